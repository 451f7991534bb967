#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""snippets.py > snippets.json: small templates, each with the text that Jinja2 makes of it.

The golden file of jinja_snippets_test. Needs Python's jinja2 (Debian: python3-jinja2); templates are
rendered in the environment that transformers makes for chat templates. Add a template here, run
this, and look at what changed.
"""
import copy
import json
from datetime import datetime, timezone

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

NOW = datetime.fromtimestamp(1721988000, timezone.utc)  # 2024-07-26 10:00:00


class Generation(jinja2.ext.Extension):
    """{% generation %}, as transformers defines it."""
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    @staticmethod
    def _body(caller):
        return caller()


def environment():
    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                          sort_keys=sort_keys)

    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                        extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = NOW.strftime
    return env


# The variables that every template may read.
VARIABLES = {
    "n": 7, "zero": 0, "neg": -3, "x": 2.5, "big": 1e16, "small": 1e-7, "whole": 3.0,
    "yes": True, "no": False, "nothing": None, "empty": "", "s": "Hello World", "t": "a,b,,c",
    "u": "äöü ß 你好 🌍 İ ﬁ", "html": "<a href='x'>\"T&J\"</a>", "ws": "  \t lead and trail \n ",
    "multi": "one\ntwo\n\nfour\n", "list": [3, 1, 2], "words": ["banana", "Apple", "cherry", "apple"],
    "mixed": [1, "a", None, True, 2.5, [1, 2], {"k": "v"}], "none_list": [], "d": {"b": 1, "a": 2, "C": 3},
    "nested": {"a": {"b": [{"c": "deep"}]}, "items": "shadowed", "list": [1]},
    "users": [{"name": "Zed", "age": 30, "city": "Rome"}, {"name": "amy", "age": 25, "city": "oslo"},
              {"name": "Bob", "age": 30, "city": "Oslo"}, {"name": "cyd", "age": 41}],
    "messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "Hi <b>"},
                 {"role": "assistant", "content": None, "tool_calls": [{"name": "f", "arguments": {"a": 1}}]},
                 {"role": "tool", "content": "42"}],
}

LITERALS = r"""
{{ 1 }} {{ 1_000 }} {{ 0x1F }} {{ 0b101 }} {{ 0o17 }} {{ 1.5 }} {{ 1e3 }} {{ 1.5E-3 }} {{ 00 }}
{{ true }} {{ True }} {{ false }} {{ False }} {{ none }} {{ None }}
{{ 'a' "b" 'c' }}{{ "it's" }}{{ 'say "x"' }}
{{ 'tab\there\nline \x41\u00e9\U0001F600 \101 \q \\ \' \"' }}
{{ [] }} {{ [1] }} {{ [1, 'a', [2.0]] }} {{ [1, 2,] }}
{{ () }} {{ (1,) }} {{ (1, 2) }} {{ 1, 2 }} {{ (1) }}
{{ {} }} {{ {'a': 1} }} {{ {'a': 1, 2: 'b', none: 3, (1, 2): 4} }} {{ {'a': 1,} }}
{{ {'a': 1, 'a': 2} }} {{ {1: 'int', 1.0: 'float', true: 'bool'} }}
{{ ["a'b", 'a"b', 'a\'"b', 'x\ny\t\\', 'ä', '\x01', '\u200b'] }}
{{ [none, true, 1.0, 1e20, 0.1] }}
{{ 9223372036854775807 }}
{{ 'multi
line' }}
{{ -9223372036854775807 - 1 }}
{{ 1.0 }} {{ 100000000000000000.0 }} {{ 1e16 }} {{ 1e15 }} {{ 123456789.123 }} {{ 0.0001 }} {{ 0.00001 }} {{ 1e22 }} {{ 1.7976931348623157e308 }} {{ 5e-324 }} {{ -0.0 }}
{{ big }} {{ small }} {{ whole }} {{ x }}
""".strip("\n").split("\n")
# The literal with a newline inside was split in two.
LITERALS = [line for line in LITERALS if line not in ("{{ 'multi", "line' }}")] + ["{{ 'multi\nline' }}"]

OPERATORS = r"""
{{ 1 + 2 * 3 }} {{ (1 + 2) * 3 }} {{ 2 ** 3 ** 2 }} {{ -2 ** 2 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 7 % -3 }}
{{ 7 / 2 }} {{ 6 / 2 }} {{ 7.5 // 2 }} {{ -7.5 // 2 }} {{ -7.5 % 2 }} {{ 7.5 % -2 }} {{ 2 ** -1 }} {{ 2.0 ** 3 }} {{ 2 ** 0.5 }}
{{ 1 / 0 }}
{{ 1 // 0 }}
{{ 1.0 % 0 }}
{{ 0 ** -1 }}
{{ 'a' + 'b' }} {{ 'a' * 3 }} {{ 3 * 'ab' }} {{ 'a' * -1 }} {{ [1] + [2] }} {{ [0] * 3 }} {{ (1,) + (2,) }} {{ (1,) * 2 }}
{{ 'a' + 1 }}
{{ 1 + 'a' }}
{{ [1] + (2,) }}
{{ 'a' ~ 1 ~ none ~ true ~ 2.0 ~ [1, 'x'] }}
{{ 1 ~ 2 + 3 ~ 4 }}
{{ 1 + 2 ~ 3 }}
{{ true + true }} {{ true * 3 }} {{ -true }} {{ +yes }} {{ - - 3 }}
{{ 'abc' - 'b' }}
{{ none + 1 }}
{{ -'a' }}
{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 3 > 2 >= 2 }} {{ 1 == 1.0 == true }} {{ 1 != 2 }} {{ 'a' < 'b' }} {{ 'Z' < 'a' }} {{ [1, 2] < [1, 3] }} {{ (1,) < (1, 2) }}
{{ 1 < 'a' }}
{{ none < 1 }}
{{ [1] == (1,) }} {{ {'a': 1} == {'a': 1.0} }} {{ none == false }} {{ 0 == false }} {{ '' == false }} {{ [] == [] }}
{{ 'a' in 'abc' }} {{ 'x' not in 'abc' }} {{ 2 in [1, 2] }} {{ 'a' in d }} {{ 1 in d }} {{ '' in 'a' }} {{ 1.0 in [1] }} {{ [1] in [[1]] }}
{{ 1 in 'abc' }}
{{ 1 in none }}
{{ 1 in 5 }}
{{ not 1 in [1] }} {{ not (1 in [1]) }} {{ not not 1 }} {{ not none }}
{{ 1 and 2 }} {{ 0 and 2 }} {{ 0 or 'x' }} {{ '' or none }} {{ 1 or 1/0 }} {{ 0 and 1/0 }} {{ 1 and 0 or 3 }}
{{ 'a' if yes else 'b' }} {{ 'a' if no else 'b' }} {{ 'a' if no }} {{ ('a' if no) is undefined }} {{ 'x' if no else 'y' if no else 'z' }}
{{ ('a' if no) + 'b' }}
{{ 1 if 0 if 1 }}
{{ 5 is divisibleby 5 and 4 is even }} {{ not 3 is odd }} {{ 3 is not odd }}
{{ 2 * 3 is odd }}
{{ -3 | abs }} {{ -(3 | abs) }} {{ 3 - 2 | abs }}
{{ 10 - 3 - 2 }} {{ 100 / 10 / 2 }} {{ 2 * 3 % 4 }}
{{ 9223372036854775807 // -1 }} {{ 1e308 * 10 }} {{ -1e308 * 10 }} {{ 1e308 * 10 - 1e308 * 10 }}
{{ 5 == 5.0000001 }} {{ 9007199254740993 == 9007199254740992.0 }} {{ 9007199254740993 > 9007199254740992.0 }}
{{ 1 in (1, 2) and 3 not in (1, 2) }}
{{ 'b' > 'a' and not 'b' > 'c' }}
""".strip("\n").split("\n")

ACCESS = r"""
{{ s[0] }} {{ s[-1] }} {{ s[1:4] }} {{ s[:5] }} {{ s[6:] }} {{ s[::-1] }} {{ s[::2] }} {{ s[-3:] }} {{ s[:-3] }} {{ s[10:0:-2] }} {{ s[100:] }} {{ s[5:2] }}
{{ u[0] }} {{ u[4] }} {{ u[7:9] }} {{ u[-1] }} {{ u[::-1] }} {{ u | length }}
{{ list[0] }} {{ list[-1] }} {{ list[1:] }} {{ list[::-1] }} {{ list[5:] }} {{ list[0:2][1] }} {{ list.0 }} {{ (1, 2, 3)[1:] }} {{ list[:none] }} {{ list[true] }}
[{{ list[9] }}] {{ list[9] is defined }}
{{ list[9].x }}
{{ list['x'] is defined }} {{ s[99] is defined }} {{ d['zz'] is defined }} {{ d[0] is defined }}
{{ list[1.5] }}
{{ list['a':] }}
{{ list[::0] }}
{{ d[1:] }}
{{ n[0] is defined }} {{ n.zz is defined }} {{ none.x is defined }} {{ none['x'] is defined }}
{{ d.a }} {{ d['a'] }} {{ d.get('a') }} {{ d.get('z') }} {{ d.get('z', 5) }} {{ d.get('z', none) }}
{{ nested.a.b[0].c }} {{ nested['a']['b'][0]['c'] }} {{ nested.a.b.0.c }}
{{ nested['items'] }} {{ nested['list'] }} {{ nested.list }} {{ nested.items() | list | length }}
{{ undefined_thing }}[{{ d.zz }}][{{ nested.zz }}]
{{ undefined_thing.x }}
{{ d.zz.y }}
{{ d.zz() }}
{{ undefined_thing() }}
{{ n() }}
{{ undefined_thing + 1 }}
{{ undefined_thing ~ 'x' }}|{{ undefined_thing == undefined_other }}|{{ undefined_thing == none }}|{{ not undefined_thing }}|{{ undefined_thing | length }}
{{ undefined_thing < 1 }}
{{ -undefined_thing }}
{{ undefined_thing[0] }}
{{ 'a' in undefined_thing }} {{ undefined_thing in ['a'] }} {{ undefined_thing | list }} {{ undefined_thing is iterable }} {{ undefined_thing is none }}
{% for a in undefined_thing %}x{% else %}none{% endfor %}
{{ [undefined_thing] }} {{ {'a': undefined_thing} }}
{{ d.items() }} {{ d.keys() }} {{ d.values() }} {{ d.keys() | list }} {{ d.items() | list }} {{ d.keys() | length }}
{{ d.items()[0] is defined }}
{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}{% for k in d %}{{ k }}{% endfor %}
{{ 'a' in d.keys() }} {{ 1 in d.values() }} {{ ('a', 2) in d.items() }}
{{ list.append(4) }}
{{ list.append is defined }}[{{ list.append }}]{{ d.pop is defined }}
{{ d.update({}) }}
{{ list.count(1) }} {{ list.index(2) }} {{ list.copy() }} {{ d.copy() }} {{ (1, 1).count(1) }}
{{ list.index(99) }}
{{ s.__class__ }}|{{ s.__class__ is defined }}
{{ s.__class__.__mro__ }}
{{ d | attr('keys') is callable }} {{ d | attr('a') is defined }} {{ s | attr('upper') is callable }}
{{ messages[0].role }}{{ messages[-1]['content'] }}{{ messages[2].tool_calls[0].arguments.a }}
{{ range(3)[1] }} {{ range(5)[-1] }} {{ range(3) | length }} {{ range(3) }} {{ range(0, 6, 2) }} {{ range(5, 0, -2) | list }} {{ range(10)[2:4] | list }}
{{ [1, 2, 3][1:][0] }} {{ 'abc'.upper()[1] }} {{ {'f': [5]}.f[0] }}
{{ whole.is_integer() }} {{ x.is_integer() }}
""".strip("\n").split("\n")

METHODS = r"""
{{ s.upper() }} {{ s.lower() }} {{ s.title() }} {{ s.capitalize() }} {{ s.swapcase() }} {{ s.casefold() }} {{ 'they\'re bill\'s' .title() }} {{ 'x1y a-b'.title() }}
{{ u.upper() }} {{ u.lower() }} {{ u.title() }} {{ u.capitalize() }} {{ 'ΑΣ ΑΣΑ'.lower() }} {{ 'ǆ ŉ ᾳ'.title() }} {{ 'ὐ ﬃ ᾳ'.upper() }}
[{{ ws.strip() }}] [{{ ws.lstrip() }}] [{{ ws.rstrip() }}] [{{ 'xxaxx'.strip('x') }}] [{{ 'abcab'.strip('ab') }}] [{{ 'xyz'.lstrip('yx') }}] [{{ 'a\n'.rstrip('\n') }}] [{{ '\u00a0\u2003a\u3000'.strip() }}] [{{ 'a'.strip(none) }}]
{{ 'a'.strip(1) }}
{{ t.split(',') }} {{ t.split(',', 1) }} {{ t.rsplit(',', 1) }} {{ ' a  b '.split() }} {{ ' a  b c '.split(none, 1) }} {{ ' a  b c '.rsplit(none, 1) }} {{ ''.split() }} {{ ''.split(',') }} {{ 'a--b'.split('--') }} {{ t.split(',', maxsplit=2) }} {{ t.split(sep=',') }} {{ ' x '.split(none, 0) }} {{ 'abc'.split('') if no else 'ok' }}
{{ 'abc'.split('') }}
{{ 'x</think>y</think>z'.split('</think>')[-1] }} {{ 'no'.split('</think>')[-1] }} {{ 'x</think>y'.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n') }}
{{ multi.splitlines() }} {{ multi.splitlines(true) }} {{ 'a\r\nb\rc\x0bd\u2028e'.splitlines() }}
{{ 'a=b=c'.partition('=') }} {{ 'a=b=c'.rpartition('=') }} {{ 'abc'.partition('=') }} {{ 'abc'.rpartition('=') }}
{{ s.replace('l', 'L') }} {{ s.replace('l', 'L', 1) }} {{ 'aaa'.replace('a', '') }} {{ 'ab'.replace('', '-') }} {{ 'aaa'.replace('aa', 'b') }} {{ 'a'.replace('', 'x', 1) }} {{ ''.replace('', 'x') }}
{{ s.replace('l', 1) }}
{{ s.startswith('He') }} {{ s.endswith('ld') }} {{ s.startswith(('x', 'H')) }} {{ s.startswith('W', 6) }} {{ s.endswith('Hello', 0, 5) }} {{ s.startswith('') }} {{ 'a'.startswith('', 5) }}
{{ s.startswith(1) }}
{{ s.find('o') }} {{ s.rfind('o') }} {{ s.find('zz') }} {{ s.index('W') }} {{ s.count('l') }} {{ 'aaa'.count('aa') }} {{ 'abc'.count('') }} {{ u.find('你') }} {{ s.find('o', 5) }} {{ s.find('o', 5, 6) }}
{{ s.index('zz') }}
{{ ', '.join(['a', 'b']) }} {{ ''.join([]) }} {{ '-'.join('abc') }} {{ ' '.join(d) }} {{ ','.join(words) }}
{{ ','.join([1, 2]) }}
[{{ 'a'.center(5) }}] [{{ 'ab'.center(5, '*') }}] [{{ 'ab'.center(6, '*') }}] [{{ 'a'.ljust(3) }}] [{{ 'a'.rjust(3, '0') }}] [{{ '7'.zfill(3) }}] [{{ '-7'.zfill(4) }}] [{{ 'abc'.zfill(2) }}] [{{ 'a\tb'.expandtabs(4) }}]
{{ 'abc'.isalpha() }} {{ '12'.isdigit() }} {{ '²'.isdigit() }} {{ '²'.isdecimal() }} {{ 'a1'.isalnum() }} {{ ' '.isspace() }} {{ 'A'.isupper() }} {{ 'aB'.islower() }} {{ ''.isalpha() }} {{ 'Ab Cd'.istitle() }} {{ 'a_1'.isidentifier() }} {{ '1a'.isidentifier() }} {{ '½'.isnumeric() }} {{ 'é'.isascii() }} {{ ''.isascii() }} {{ 'a\n'.isprintable() }} {{ 'A1'.isupper() }} {{ '1'.isupper() }}
{{ 'prefix-x'.removeprefix('prefix-') }} {{ 'x.py'.removesuffix('.py') }} {{ 'x'.removeprefix('y') }}
{{ '{} and {}'.format(1, 'b') }} {{ '{1}{0}'.format('a', 'b') }} {{ '{x}-{y}'.format(x=1, y='z') }} {{ '{{}}'.format() }} {{ '{:>5}|{:<5}|{:^5}|{:*^7}'.format('a', 'b', 'c', 'd') }} {{ '{:05d} {:+d} {:x} {:#x} {:b} {:,}'.format(42, 5, 255, 255, 5, 1234567) }} {{ '{:.2f} {:e} {:g} {:%}'.format(3.14159, 12345.678, 0.0001, 0.25) }} {{ '{0[a]} {1.x}'.format({'a': 1}, {'x': 2}) }} {{ '{!r}'.format('a') }} {{ '{:5}|{:5}'.format(1, 'a') }} {{ '{}'.format(none) }} {{ '{:.2}'.format('abc') }} {{ '{:d}'.format(true) }} {{ '{}'.format(1.0) }}
{{ '{}'.format() }}
{{ '{'.format() }}
{{ '{:d}'.format('a') }}
{{ '%s is %d' % ('a', 5) }} {{ '%s' % 'x' }} {{ '%s' % [1] }} {{ '%(k)s-%(n)d' % {'k': 'v', 'n': 2} }} {{ '%5s|%-5s|%05d|%+d|%x|%X|%o|%e|%.3f|%g|%%' % ('a', 'b', 42, 5, 255, 255, 8, 1234.5, 3.14159, 0.0001) }} {{ '%r' % 'a' }} {{ '%c%c' % ('a', 98) }} {{ '%d' % 3.7 }} {{ '%.2s' % 'abc' }} {{ '%s' % none }} {{ '%i' % true }}
{{ '%d' % 'a' }}
{{ '%s %s' % ('a',) }}
{{ '%s' % ('a', 'b') }}
{{ 'abc'.upper().lower().title() }} {{ ('a' ~ 'b').upper() }} {{ 'a'.nothing is defined }}
{{ s.upper(1) }}
{{ 'x'.join is callable }} {% set f = s.upper %}{{ f() }}
""".strip("\n").split("\n")

FILTERS = r"""
{{ s | upper }} {{ s | lower }} {{ 'hello WORLD foo-bar (baz) [qux] {z} <y>' | title }} {{ 'hELLO' | capitalize }} {{ none | upper }} {{ 5 | lower }} {{ true | capitalize }}
[{{ ws | trim }}] [{{ 'xxaxx' | trim('x') }}] [{{ 5 | trim }}] [{{ none | trim }}] [{{ undefined_thing | trim }}]
{{ list | length }} {{ s | count }} {{ d | length }} {{ u | length }} {{ (1, 2) | length }} {{ range(4) | length }}
{{ 5 | length }}
{{ none | length }}
{{ list | first }} {{ list | last }} {{ s | first }} {{ s | last }} {{ d | first }} [{{ [] | first }}] {{ ([] | first) is undefined }} {{ d | last }} {{ range(3) | last }}
{{ list | map('string') | last }}
{{ list | join }} {{ list | join(', ') }} {{ s | join('-') }} {{ words | join(d='/') }} {{ users | join(', ', attribute='name') }} {{ [1, none, true, 2.5] | join('|') }} {{ d | join }} {{ [] | join('x') }}
{{ none | join }}
{{ list | list }} {{ 'abc' | list }} {{ d | list }} {{ (1, 2) | list }} {{ range(3) | list }}
{{ none | list }}
{{ list | reverse | list }} {{ s | reverse }} {{ u | reverse }} {{ (1, 2) | reverse | list }} {{ range(3) | reverse | list }} {{ d | reverse | list }}
{{ list | sort }} {{ list | sort(reverse=true) }} {{ words | sort }} {{ words | sort(case_sensitive=true) }} {{ users | sort(attribute='age') | map(attribute='name') | join(',') }} {{ users | sort(attribute='age,name', reverse=true) | map(attribute='name') | join(',') }} {{ 'hello' | sort | join }} {{ d | sort }} {{ [[2, 1], [1, 2]] | sort(attribute=0) }}
{{ [1, 'a'] | sort }}
{{ users | sort(attribute='city') }}
{{ words | unique | list }} {{ words | unique(case_sensitive=true) | list }} {{ [1, 1.0, true, 2] | unique | list }} {{ users | unique(attribute='age') | map(attribute='name') | list }} {{ 'hello' | unique | join }}
{{ [[1], [1]] | unique | list }}
{{ d | dictsort }} {{ d | dictsort(true) }} {{ d | dictsort(false, 'value') }} {{ d | dictsort(reverse=true) }} {{ d | dictsort(by='value', reverse=true) }}
{{ list | dictsort }}
{{ d | dictsort(by='x') }}
{{ d | items | list }} {{ undefined_thing | items | list }}
{{ list | items | list }}
{{ users | groupby('city', default='?') | list | length }} {% for city, group in users | groupby('city', default='?') %}{{ city }}:{{ group | map(attribute='name') | join('+') }};{% endfor %}
{% for g in users | groupby('age') %}{{ g.grouper }}={{ g.list | length }} {{ g[0] }} {{ g }};{% endfor %}
{{ list | batch(2) | list }} {{ list | batch(2, 'x') | list }} {{ range(7) | slice(3) | list }} {{ range(7) | slice(3, 'x') | list }} {{ [] | batch(2) | list }} {{ [1] | slice(3) | list }}
{{ list | min }} {{ list | max }} {{ words | min }} {{ words | max(case_sensitive=true) }} {{ users | max(attribute='age') }} [{{ [] | min }}] {{ 'hello' | max }}
{{ list | sum }} {{ users | sum(attribute='age') }} {{ list | sum(start=10) }} {{ [0.1, 0.2] | sum }} {{ [[1], [2]] | sum(start=[]) }} {{ [] | sum }}
{{ ['a'] | sum }}
{{ words | map('upper') | list }} {{ words | map('replace', 'a', 'A') | join(' ') }} {{ users | map(attribute='city', default='none') | list }} {{ users | map(attribute='city') | list }} {{ [[1, 2], [3]] | map('length') | list }} {{ [[1, 2], [3, 4]] | map(attribute=1) | list }} {{ messages | map(attribute='tool_calls.0.name', default='-') | list if no else '' }} {{ none | map('upper') | list }} {{ users | map(attribute='name') | map('length') | sum }}
{{ list | map('nosuch') | list }}
{{ list | map | list }}
{{ list | select('odd') | list }} {{ list | reject('odd') | list }} {{ [0, 1, '', none, 'a'] | select | list }} {{ [0, 1, '', none, 'a'] | reject | list }} {{ list | select('>', 1) | list }} {{ list | select('divisibleby', 3) | list }} {{ list | select('in', [1, 2]) | list }} {{ words | select('equalto', 'apple') | list }}
{{ users | selectattr('age', 'equalto', 30) | map(attribute='name') | join(',') }} {{ users | rejectattr('age', '==', 30) | map(attribute='name') | list }} {{ users | selectattr('city') | list | length }} {{ users | selectattr('city', 'undefined') | list | length }} {{ users | selectattr('city', 'defined') | map(attribute='city') | list }} {{ users | rejectattr('city') | map(attribute='name') | list }} {{ messages | selectattr('role', 'in', ['user', 'tool']) | list | length }} {{ users | selectattr('age', 'gt', 26) | list | length }}
{{ users | selectattr | list }}
{{ 'yes' if (list | select('gt', 99)) else 'no' }} {{ 'yes' if (list | select('gt', 99) | list) else 'no' }}
{% set g = list | map('string') %}{{ g | join(',') }}|{{ g | join(',') }}|{{ g is iterable }}{{ g is sequence }}
{{ list | map('string') | length }}
{{ undefined_thing | default('x') }} {{ none | default('x') }} {{ none | default('x', true) }} {{ '' | d('y', boolean=true) }} {{ 0 | default(5) }} {{ d.zz | default(d.a) }} [{{ undefined_thing | default }}] {{ undefined_thing | default(none) }}
{{ '5' | int }} {{ '5.7' | int }} {{ 'x' | int }} {{ 'x' | int(9) }} {{ 5.9 | int }} {{ -5.9 | int }} {{ true | int }} {{ '0x1F' | int(base=16) }} {{ '1F' | int(0, 16) }} {{ none | int }} {{ ' 42 ' | int }} {{ '1_000' | int }} {{ '1e3' | int }} {{ '-7' | int }} {{ [] | int(default=3) }} {{ '' | int }}
{{ '5' | float }} {{ '5.7' | float }} {{ 'x' | float }} {{ 'x' | float(1.5) }} {{ 5 | float }} {{ true | float }} {{ '1e3' | float }} {{ 'inf' | float }} {{ 'nan' | float }} {{ ' 2 ' | float }} {{ none | float }} {{ '-.5' | float }}
{{ undefined_thing | int }}
{{ 'x' | float(d) | int }}
{{ -5 | abs }} {{ -2.5 | abs }} {{ true | abs }}
{{ 'a' | abs }}
{{ 2.5 | round }} {{ 3.5 | round }} {{ 2.567 | round(2) }} {{ 2.5 | round(0, 'ceil') }} {{ 2.5 | round(method='floor') }} {{ 2.123 | round(2, 'ceil') }} {{ 42 | round }} {{ 42 | round(-1) }} {{ 45 | round(-1) }} {{ 55 | round(-1) }} {{ 1234.5 | round(-2) }} {{ 0.15 | round(1) }} {{ 2.675 | round(2) }} {{ -2.5 | round }} {{ 42.55 | round | int }} {{ 7 | round(0, 'ceil') }} {{ 1e20 | round(2) }}
{{ 2.5 | round(0, 'x') }}
{{ 5 | string }} {{ 2.0 | string }} {{ none | string }} {{ [1, 'a'] | string }} {{ true | string | length }} {{ d | string }}
{{ html | escape }} {{ html | e }} {{ html | safe }} {{ html | e | e }} {{ html | e | forceescape }} {{ 5 | e }} {{ (html | safe) is escaped }} {{ html is escaped }}
{{ '<' + ('<' | safe) }} {{ ('<' | safe) + '<' }} {{ '<' ~ ('<' | safe) }} {{ ('<' | safe) * 2 }} {{ ('%s<' | safe) % '<' }} {{ ['<', ('>' | safe)] | join }} {{ ('<{}>' | safe).format('&') }} {{ ('a' | safe) == 'a' }} {{ ('<' | safe) | upper is escaped }} {{ ('<' | safe) | replace('x', 'y') is escaped }} {{ ('a<' | safe)[1:] is escaped }} {{ ('<' | safe) | string is escaped }}
{{ s | replace('o', '0') }} {{ s | replace('o', '0', 1) }} {{ 5 | replace(5, 6) }} {{ none | replace('None', 'x') }} {{ s | replace('l', '', count=2) }}
{{ multi | indent }}| {{ multi | indent(2) }}| {{ multi | indent(2, true) }}| {{ multi | indent(2, first=true, blank=true) }}| {{ 'a\nb' | indent('> ') }}| {{ 'a\nb' | indent(width=1) }} [{{ '' | indent }}] {{ 'x' | indent(3, true) }} {{ 'a\n' | indent }}|
{{ 5 | indent }}
{{ 'one two  three' | wordcount }} {{ 'a-b c_d é1' | wordcount }} {{ '' | wordcount }}
{{ 'a b&c/d?é~' | urlencode }} {{ {'a': 'b c', 'd': 1} | urlencode }} {{ [('x', 'y/z')] | urlencode }} {{ 5 | urlencode }}
{{ '%s-%s' | format('a', 2) }} {{ '%(a)s' | format(a=5) }}
[{{ 'a' | center(5) }}] [{{ 'ab' | center(5) }}]
{{ 'foo bar baz qux' | truncate(9) }} {{ 'foo bar baz qux' | truncate(9, true) }} {{ 'foo bar baz qux' | truncate(11) }} {{ 'foo bar baz qux' | truncate(11, false, '...', 0) }} {{ 'abc' | truncate(3) }}
{{ s | nosuchfilter }}
{% if no %}{{ s | nosuchfilter }}{% endif %}ok
{{ 'a' | upper | lower | replace('a', 'b') | length }}
{{ s | upper() }} {{ s|upper|first }}
{{ [1, 2, 3] | length is odd }} {{ ([1, 2] | length) + 1 }} {{ 1 + [1, 2] | length }}
{{ users | map(attribute='name') | sort | join(', ') }} {{ users | map(attribute='name') | map('lower') | sort | first }}
{{ d | tojson }} {{ mixed | tojson }} {{ u | tojson }} {{ html | tojson }} {{ [1.0, 1e100, 1e-7, 100000.0] | tojson }} {{ 'a"b\\c\n\t\x01\x7f\u2028' | tojson }} {{ none | tojson }} {{ true | tojson }} {{ (1, 'a') | tojson }} {{ {} | tojson }} {{ [] | tojson }}
{{ d | tojson(indent=2) }} {{ mixed | tojson(indent=4) }} {{ {} | tojson(indent=2) }} {{ [] | tojson(indent=2) }} {{ [[], {}] | tojson(indent=1) }} {{ [1] | tojson(indent=0) }} {{ [1] | tojson(indent='--') }}
{{ d | tojson(sort_keys=true) }} {{ u | tojson(ensure_ascii=true) }} {{ u | tojson(ensure_ascii=True, indent=2) }} {{ d | tojson(separators=(',', ':')) }} {{ d | tojson(indent=2, separators=(', ', ' = ')) }} {{ {1: 2, none: 3, true: 4, 2.5: 5} | tojson }} {{ {'b': {'d': 1, 'c': 2}, 'a': 0} | tojson(sort_keys=true) }} {{ 'é' | tojson(true) }}
{{ undefined_thing | tojson }}
{{ {'a': undefined_thing} | tojson }}
{{ {(1, 2): 3} | tojson }}
{{ d | tojson | safe }} {{ (d | tojson) is string }}
{{ s | tojson(nosuch=1) }}
""".strip("\n").split("\n")

TESTS = r"""
{{ s is defined }} {{ zz is defined }} {{ zz is not defined }} {{ zz is undefined }} {{ nothing is none }} {{ nothing is defined }} {{ none is none }} {{ zz is none }}
{{ s is string }} {{ n is string }} {{ n is number }} {{ x is number }} {{ yes is number }} {{ n is integer }} {{ yes is integer }} {{ x is float }} {{ n is float }} {{ yes is boolean }} {{ n is boolean }}
{{ d is mapping }} {{ list is mapping }} {{ list is sequence }} {{ s is sequence }} {{ d is sequence }} {{ n is sequence }} {{ (1,) is sequence }} {{ range(3) is sequence }} {{ d.items() is sequence }} {{ zz is sequence }}
{{ list is iterable }} {{ s is iterable }} {{ d is iterable }} {{ n is iterable }} {{ none is iterable }} {{ range(3) is iterable }} {{ d.keys() is iterable }}
{{ s.upper is callable }} {{ s is callable }} {{ range is callable }} {{ namespace is callable }}
{{ yes is true }} {{ yes is false }} {{ 1 is true }} {{ no is false }} {{ 0 is false }} {{ none is false }}
{{ 3 is odd }} {{ 4 is even }} {{ 9 is divisibleby(3) }} {{ 9 is divisibleby 2 }} {{ 3.0 is odd }}
{{ 'a' is odd }}
{{ 3 is divisibleby(0) }}
{{ 'abc' is lower }} {{ 'ABC' is upper }} {{ 'Abc' is lower }} {{ '1' is upper }} {{ 5 is lower }}
{{ 1 is eq 1 }} {{ 1 is equalto(1) }} {{ 1 is ne 2 }} {{ 1 is lt 2 }} {{ 2 is gt(1) }} {{ 2 is ge 2 }} {{ 2 is le 1 }} {{ 1 is lessthan 2 }} {{ 2 is greaterthan 1 }} {{ 'a' is in ['a'] }} {{ 'a' is not in 'abc' }} {{ 1 is in(list) }}
{{ 1 is lt 'a' }}
{{ none is sameas none }} {{ true is sameas true }} {{ 1 is sameas true }} {{ n is sameas n }} {{ d is sameas d }} {{ 1.0 is sameas 1 }}
{{ 'upper' is filter }} {{ 'nosuch' is filter }} {{ 'odd' is test }} {{ 'nosuch' is test }}
{{ s is nosuchtest }}
{% if no %}{{ s is nosuchtest }}{% endif %}ok
{{ s is string and n is number or zz is defined }} {{ s is not string or true }} {{ not s is string }}
{{ s is string is true }}
{{ (s is string) is true }} {{ 'a' if s is string else 'b' }} {{ [s is string, n is none] }}
{{ zz is defined and zz.x }} {{ zz is defined and zz.x is defined }}
{% if d.zz is defined and d.zz %}a{% elif d.a is defined %}b{% endif %}
{{ 1 is eq(1) and 2 is eq(2) }} {{ 5 is eq 5 if yes else 0 }}
""".strip("\n").split("\n")

STATEMENTS = [
    # if, set
    "{% if n > 5 %}big{% elif n > 3 %}mid{% else %}small{% endif %}",
    "{% if zero %}a{% elif none_list %}b{% elif zz %}c{% else %}d{% endif %}",
    "{% if yes: %}colon{% endif %}",
    "{% set a = 1 %}{% set b, c = 2, 3 %}{% set (e, f) = [4, 5] %}{{ a }}{{ b }}{{ c }}{{ e }}{{ f }}",
    "{% set a = 1, 2 %}{{ a }}{% set b = (1,) %}{{ b }}{% set c, = [9] %}{{ c }}",
    "{% set a, b = [1] %}",
    "{% set a, b = 5 %}",
    "{% set a %}x{{ n }}y{% endset %}[{{ a }}]{{ a is string }}",
    "{% set a | upper | replace('X', 'z') %}x{{ s }}{% endset %}{{ a }}",
    "{% set a = 1 %}{% if yes %}{% set a = 2 %}{% endif %}{{ a }}",
    "{% if yes %}{% set q = 2 %}{% endif %}{{ q }}{% if no %}{% set r = 2 %}{% endif %}[{{ r }}]",
    "{% set true = 1 %}",
    "{% set none = 1 %}",
    "{% set d.a = 1 %}",
    "{% set ns = namespace() %}{% set ns.a = 1 %}{% set ns.b = ns.a + 1 %}{{ ns.a }}{{ ns.b }}{{ ns['a'] }}[{{ ns.zz }}]{{ ns }}",
    "{% set ns = namespace(a=1, b='x') %}{% set ns.a, y = 5, 6 %}{{ ns.a }}{{ ns.b }}{{ y }}",
    "{% set ns = namespace({'a': 1}, b=2) %}{{ ns.a }}{{ ns.b }}{% set ns2 = namespace([('k', 'v')]) %}{{ ns2.k }}",
    "{% set ns = namespace(d) %}{% set ns.a = 9 %}{{ ns.a }}{{ d.a }}",
    "{% set ns.x = 1 %}",
    "{{ namespace(1) }}",
    "{{ namespace(a=1) | tojson }}",
    "{% set ns = namespace() %}{% set ns.self = ns %}{{ ns }}",
    "{{ dict(a=1, b='x') }}{{ dict([('k', 'v')]) }}{{ dict({'a': 1}, b=2) }}{{ dict() }}",
    # for
    "{% for x in list %}{{ x }}{% if not loop.last %},{% endif %}{% endfor %}",
    "{% for x in list %}{{ loop.index }}/{{ loop.index0 }}/{{ loop.revindex }}/{{ loop.revindex0 }}/{{ loop.first }}/{{ loop.last }}/{{ loop.length }}/{{ loop.depth }}/{{ loop.depth0 }} {% endfor %}",
    "{% for x in list %}[{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }}]{% endfor %}",
    "{% for x in list %}{{ loop.previtem is defined }}{{ loop.nextitem is undefined }} {% endfor %}",
    "{% for x in range(5) %}{{ loop.cycle('a', 'b', 'c') }}{% endfor %}",
    "{% for x in [1, 1, 2, 2, 1] %}{{ loop.changed(x) }} {% endfor %}",
    "{% for x in [] %}a{% else %}empty{% endfor %}{% for x in [1] %}a{% else %}b{% endfor %}",
    "{% for x in [1, 2, 3] %}{% if x == 2 %}{% continue %}{% endif %}{{ x }}{% else %}E{% endfor %}",
    "{% for x in [1, 2, 3] %}{% if x == 2 %}{% break %}{% endif %}{{ x }}{% else %}E{% endfor %}",
    "{% for x in [1] %}{% break %}{% else %}E{% endfor %}",
    "{% for x in [1, 2] %}{% continue %}{% else %}E{% endfor %}",
    "{% break %}",
    "{% for x in list if x > 1 %}{{ loop.index }}:{{ x }}/{{ loop.length }} {% else %}none{% endfor %}",
    "{% for x in list if x > 10 %}a{% else %}none{% endfor %}",
    "{% set ns = namespace(n=0) %}{% for x in range(9) if ns.n < 2 %}{% set ns.n = ns.n + 1 %}{{ x }}{% endfor %}",
    "{% set ns = namespace(n=0) %}{% for x in range(9) if ns.n < 2 %}{% set ns.n = ns.n + 1 %}{{ x }}{{ loop.last }}{% endfor %}",
    "{% for a, b in [(1, 2), [3, 4]] %}{{ a }}-{{ b }} {% endfor %}{% for k, v in d | dictsort %}{{ k }}{{ v }}{% endfor %}",
    "{% for (a, b), c in [((1, 2), 3)] %}{{ a }}{{ b }}{{ c }}{% endfor %}",
    "{% for a, b in [1, 2] %}{% endfor %}",
    "{% for a in 5 %}{% endfor %}",
    "{% for a in none %}{% endfor %}",
    "{% for c in 'aé你' %}{{ c }}.{% endfor %}{% for k in d %}{{ k }}{% endfor %}",
    "{% for x in 1, 2, 3 %}{{ x }}{% endfor %}{% for x in (list if yes else []) %}{{ x }}{% endfor %}",
    "{% for i in range(2) %}{% for j in range(2) %}{{ i }}{{ j }}{{ loop.index }} {% endfor %}{{ loop.index }};{% endfor %}",
    "{% for i in list %}{% set outer = loop %}{% for j in list %}{{ outer.index }}{{ loop.index }} {% endfor %}{% endfor %}",
    "{% set x = 'outer' %}{% for i in [1, 2] %}{{ x }}{% set x = i %}{{ x }} {% endfor %}{{ x }}",
    "{% for x in [1] %}{% endfor %}{{ x }}",
    "{% for m in messages %}{% if loop.first %}{% set sys = m.content %}{% endif %}[{{ sys }}]{% endfor %}",
    "{% for i in list %}{% if i == 1 %}{% set found = true %}{% endif %}{% endfor %}[{{ found }}]",
    "{% for x in list recursive %}{{ x }}{% endfor %}",
    "{% for x in [1, [2, [3, 4]], 5] recursive %}{% if x is sequence %}({{ loop(x) }}){% else %}{{ x }}@{{ loop.depth }}{% endif %}{% if not loop.last %},{% endif %}{% endfor %}",
    "{% for x in list %}{{ loop([1]) }}{% endfor %}",
    "{{ loop }}[{{ loop is defined }}]",
    "{% for x in list %}{{ loop }}{% endfor %}",
    "{% for x in list | reverse %}{{ x }}{{ loop.last }}{{ loop.length }} {% endfor %}",
    "{% for x in list | map('string') %}{{ x }}{{ loop.revindex }} {% endfor %}",
    "{% for x in users | selectattr('age', 'gt', 26) %}{{ loop.index }}{{ x.name }}{% endfor %}",
    "{% for x in [3, 1] %}{% set ns = namespace(v=x) %}{% for y in [1, 2] %}{% set ns.v = ns.v + y %}{% endfor %}{{ ns.v }} {% endfor %}",
    "{% for k, v in {'a': 1, 'b': 2}.items() %}{{ loop.index }}{{ k }}{{ v }}{{ '' if loop.last else ',' }}{% endfor %}",
    "{% for x in [1, 2, 3][1:] %}{{ x }}{% endfor %}{% for x in list[::-1] %}{{ x }}{% endfor %}{% for i in range(list | length - 1, -1, -1) %}{{ list[i] }}{% endfor %}",
    "{% for x in range(100001) %}{% endfor %}",
    "{% for loop in [1] %}{% endfor %}x" if False else "{% for x in range(3, 0, -1) %}{{ x }}{% endfor %}",
    # macros
    "{% macro f(a, b=2, c='x') %}{{ a }}{{ b }}{{ c }};{% endmacro %}{{ f(1) }}{{ f(1, 3) }}{{ f(1, c='z') }}{{ f(b=5, a=4) }}{{ f() }}",
    "{% macro f(a) %}[{{ a }}]{{ a is defined }}{% endmacro %}{{ f() }}{{ f(none) }}",
    "{% macro f(a) %}{% endmacro %}{{ f(1, 2) }}",
    "{% macro f(a) %}{% endmacro %}{{ f(b=2) }}",
    "{% macro f(a) %}{% endmacro %}{{ f(1, a=2) }}",
    "{% macro f(a) %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ f(1, 2, 3, x=4) }}{{ f() }}",
    "{% macro f(a, b=a, c=a ~ '!') %}{{ b }}{{ c }}{% endmacro %}{{ f('q') }}{{ f('q', 'r') }}",
    "{% macro f() %}{{ caller() }}|{{ caller() }}{% endmacro %}{% call f() %}body{{ n }}{% endcall %}",
    "{% macro f(items) %}{% for i in items %}{{ caller(i, loop.index) }}{% endfor %}{% endmacro %}{% call(x, i) f([5, 6]) %}<{{ x }}{{ i }}>{% endcall %}",
    "{% macro f() %}x{% endmacro %}{% call f() %}y{% endcall %}",
    "{% macro f() %}{{ caller is defined }}{% endmacro %}{{ f() }}{% call f() %}{% endcall %}",
    "{% macro f(caller=none) %}{{ caller() if caller else 'no' }}{% endmacro %}{{ f() }}{% call f() %}yes{% endcall %}",
    "{% macro f() %}{{ caller('a') }}{% endmacro %}{% call(x='d') f() %}{{ x }}{% endcall %}",
    "{% macro fact(n) %}{{ 1 if n <= 1 else n * (fact(n - 1) | int) }}{% endmacro %}{{ fact(5) }}",
    "{% macro outer() %}{% macro inner(x) %}<{{ x }}>{% endmacro %}{{ inner(1) }}{{ inner(2) }}{% endmacro %}{{ outer() }}[{{ inner is defined }}]",
    "{% macro f() %}{{ later }}{% endmacro %}{% set later = 'seen' %}{{ f() }}",
    "{% macro f() %}{% set v = 'in' %}{{ v }}{% endmacro %}{% set v = 'out' %}{{ f() }}{{ v }}",
    "{% for i in [1, 2] %}{% macro f() %}{{ i }}{{ loop.index }}{% endmacro %}{{ f() }}{% endfor %}",
    "{% macro f() %}[{{ i }}]{% endmacro %}{% for i in [1] %}{{ f() }}{% endfor %}",
    "{% macro f(x) %}{{ x }}{% endmacro %}{{ f('<') | e }}{{ f(1) + 'a' }}{{ f(2) is string }}{{ f is callable }}{{ f }}",
    "{% macro f(x) -%}   a{{ x }}   {%- endmacro %}[{{ f(1) }}]",
    "{% macro f(a, b) %}{{ a }}{{ b }}{% endmacro %}{{ f(*[1, 2]) }}{{ f(**{'a': 3, 'b': 4}) }}{{ f(1, *[2]) }}{{ f(*[5], **{'b': 6}) }}",
    "{% macro f(a, b) %}{% endmacro %}{{ f(**[1]) }}",
    "{{ f() }}{% macro f() %}{% endmacro %}",
    "{% macro f(a) %}{{ f.name }}{{ f.arguments }}{% endmacro %}{{ f(1) }}",
    "{% macro r(v, depth=0) %}{% if v is mapping %}{{ '{' }}{% for k, x in v.items() %}{{ k }}:{{ r(x, depth + 1) }}{{ ',' if not loop.last }}{% endfor %}{{ '}' }}{% elif v is iterable and v is not string %}[{% for x in v %}{{ r(x, depth + 1) }}{{ ',' if not loop.last }}{% endfor %}]{% else %}{{ v }}@{{ depth }}{% endif %}{% endmacro %}{{ r(mixed) }}{{ r(nested) }}",
    # blocks
    "{% with a = 1, b = 2 %}{{ a }}{{ b }}{% endwith %}[{{ a }}]",
    "{% set a = 1 %}{% with a = 2, b = a %}{{ a }}{{ b }}{% endwith %}{{ a }}",
    "{% with %}{% set q = 1 %}{{ q }}{% endwith %}[{{ q }}]",
    "{% with a, b = (1, 2) %}{{ a }}{{ b }}{% endwith %}",
    "{% filter upper %}abc {{ s }}{% endfilter %}{% filter replace('a', 'b') | upper %}aaa{% endfilter %}",
    "{% filter trim %}  x {% set z = 1 %} {% endfilter %}[{{ z }}]",
    "{% generation %}a{{ n }}{% set q = 1 %}{% endgeneration %}[{{ q }}]",
    "{%- generation -%}  a  {%- endgeneration -%}  b",
    "{% raw %}{{ not }} {% tags %} {# here #}{% endraw %}x",
    "a {%- raw -%}  {{ x }}  {%- endraw -%}  b",
    "{% raw %}\n  a\n{% endraw %}\nb",
    "{# comment {{ x }} {% if %} #}a{# multi\nline #}b",
    "{% print 'a', 1 %}",
    "{{ raise_exception('bad ' ~ n) }}",
    "{% if no %}{{ raise_exception('bad') }}{% endif %}fine",
    "{{ strftime_now('%d %b %Y %H:%M:%S %A %B %y %j %p %I %%') }}",
    "{{ strftime_now('') }}|{{ strftime_now('plain') }}",
    "{% set j = joiner() %}{% for x in list %}{{ j() }}{{ x }}{% endfor %}{% set k = joiner('|') %}{{ k() }}{{ k() }}{{ k() }}",
    "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.next() }}{{ c.reset() }}{{ c.current }}",
    "{{ range(3) | list }}{{ range(1, 3) | list }}{{ range(0, 10, 3) | list }}{{ range(3, 0) | list }}{{ range(-1) | list }}",
    "{{ range(1, 2, 0) }}", "{{ range('a') }}", "{{ range() }}", "{{ range(1.5) }}",
]

WHITESPACE = [
    "a\n{% if yes %}\nb\n{% endif %}\nc\n",
    "a\n  {% if yes %}  \nb\n  {% endif %}\nc",
    "a\n  {%+ if yes %}b{% endif +%}\nc",
    "a  {%- if yes -%}  b  {%- endif -%}  c",
    "a\n\n{{- s -}}\n\nb",
    "  {{ s }}  \n  {{ s }}\n",
    "  {# c #}\n  x\n\t{# d #}  y {# e #}\nz",
    "{# c -#}\n\n  x  {#- d #}\ny{#+ e #}",
    "  {# c +#}\nx\n  {#+ d #}\ny",
    "x {% if yes %} y {% endif %} z",
    "x\n\t {% if yes %}y{% endif %}\t \nz",
    "{% if yes %}\n\n\nx{% endif %}\n\n\n",
    "\n{% if yes %}x{% endif %}",
    "\n\n", "\n", "", "x\n", "x\n\n", "x\r\n", "x\r\ny\rz\r\n",
    "a\r\n  {% if yes %}\r\nb{% endif %}\r\n",
    "{{ s }}\n{{ s }}\n",
    "{%- if yes %} x {%- endif %} y",
    "   {%- set a = 1 -%}   {{ a }}   ",
    "{% for i in [1, 2] %}\n  {{ i }}\n{% endfor %}\nend",
    "{% for i in [1, 2] -%}\n  {{ i }}\n{%- endfor %}\nend",
    "{% for i in [1, 2] %}\n    {%- if i == 1 %}\n one\n    {%- else %}\n two\n    {%- endif %}\n{%- endfor %}",
    "  {% raw %}  x  {% endraw %}  y",
    "  {% raw -%}  x  {%- endraw %}\n  y",
    "a{{ '\n' }}  {% if yes %}b{% endif %}",
    "\u00a0{%- if yes %}x{% endif -%}\u00a0\u2003y",
    "\u00a0{% if yes %}x{% endif %}",
    "{% if yes %}{% endif %}\n{% if yes %}{% endif %}\nx",
    "a {% set b = 1 %}\n c {% set d = 2 +%}\n e",
    "{{ '}}' }}{{ \"%}\" }}{{ '{{' }}{{ {'a': {'b': 1}}['a'] }}{{ {'a': {}} }}",
    "{{{'a': 1}}}", "{{ {'a': 1}.a }}",
    "{ { % } { %} {% if yes %}{x}{% endif %} } }",
    "{{-s-}}", "{{- -n -}}", "{{n-1}}", "{{ n -}}   x", "x   {{+ n }}", "{{ n +}}",
    "{% if yes -%}\n  {{- s }}\n{% endif %}", "<|im_start|>{{ 'user' }}\n{{ s }}<|im_end|>\n",
    "{%- for m in messages %}\n    {{- '<|' + m['role'] + '|>\\n' }}\n    {{- m.content | default('', true) | trim }}\n{%- endfor %}",
    "{%if yes%}x{%endif%}", "{%\nif yes\n%}x{%\nendif\n%}\ny", "{{\n n\n}}\n", "{{ n }}{# #}{# #}\n\n{% if yes %}{# x #}\n{% endif %}",
]

ERRORS = r"""
{{ }}
{{ 1 + }}
{{ (1 }}
{{ [1 }}
{{ 1 ) }}
{{ 'abc }}
{% if %}x{% endif %}
{% if yes %}x
{% for x in %}{% endfor %}
{% for in list %}{% endfor %}
{% endif %}
{% if yes %}{% endfor %}
{% nosuchtag %}
{% %}
{{ s | }}
{{ s is }}
{{ a.b. }}
{{ .a }}
{{ a..b }}
{{ f(a=1, 2) }}
{{ f(a=1, a=2) }}
{{ f(**d, *list) }}
{{ 1 2 }}
{{ s s }}
{{ $ }}
{{ a ! b }}
{{ '\x4' }}
{{ '\u12' }}
{{ '\U99999999' }}
{# not closed
{% raw %} not closed
{% macro f( %}{% endmacro %}
{% macro f(a=1, b) %}{% endmacro %}
{% macro f(a, a) %}{% endmacro %}x
{% set 1 = 2 %}
{% set a.b.c = 2 %}
{% set a[0] = 2 %}
{% call f %}{% endcall %}
{% call 1 %}{% endcall %}
{{ lambda x: x }}
{{ [x for x in list] }}
{{ a = 1 }}
{{ {1} }}
{{ {'a' 1} }}
{{ {,} }}
{{ [,] }}
{{ (,) }}
{{ not }}
{{ if }}
{{ 1 if }}
{{ 1 is 2 }}
{{ list[1,2] }}
{{ 007 }}
{{ 1abc }}
{{ 1.2.3 }}
{{ 5.zz is defined }}
{% include 'x' %}
{% extends 'x' %}
{% import 'x' as y %}
{% from 'x' import y %}
{% do list %}
{% with a %}{% endwith %}
{% filter nosuch %}{% endfilter %}
{% generation %}x
{% set x %}y
{% elif yes %}
{% else %}
""".strip("\n").split("\n")


def main():
    env = environment()
    rows = []
    groups = {"literals": LITERALS, "operators": OPERATORS, "access": ACCESS, "methods": METHODS,
              "filters": FILTERS, "tests": TESTS, "statements": STATEMENTS,
              "whitespace": WHITESPACE, "errors": ERRORS}
    for group, templates in groups.items():
        for template in templates:
            row = {"group": group, "template": template}
            try:
                row["text"] = env.from_string(template).render(**copy.deepcopy(VARIABLES))
            except Exception as e:  # any exception means that an error is expected
                row["error"] = type(e).__name__
            rows.append(row)
    lines = ",\n".join(f"  {json.dumps(row)}" for row in rows)
    print(f'{{"variables": {json.dumps(VARIABLES)},\n "now": {int(NOW.timestamp())},\n'
          f' "snippets": [\n{lines}\n]}}')


if __name__ == "__main__":
    main()
