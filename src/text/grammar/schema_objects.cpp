// SPDX-License-Identifier: MIT
// SchemaReader: its functions for objects and arrays.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/utf8.h"
#include "snapkv/grammar.h"
#include "text/grammar/schema_reader.h"

namespace snapkv::grammar {
namespace {

// A rule is made for every character of the names that other names must differ from. The tree of
// names is as deep as the longest name.
constexpr size_t kMostNameCharacters = 256;
constexpr size_t kMostNameTrees = 20000;

// The names of properties as a tree of their characters.
struct NameTree {
  std::map<uint32_t, NameTree> children;
  bool is_name = false;
};

// Adds rules for what may follow a prefix shared by names, up to the end of the string: a character
// that continues none of them, and then anything; or a character that continues some, and then a
// rest of theirs; or the end, if the prefix is not a name itself. The closing quote belongs to the
// rule, so that the rule can end nowhere else (TokenMasks). Escapes that spell a character of a
// name are left out.
std::string other_rests(SchemaRules& rules, const NameTree& tree, const std::string& wish) {
  CharSet taken;
  taken.add(0, 0x1f);
  for (const char c : {'"', '\\', '\x7f'})
    taken.add(static_cast<uint32_t>(c), static_cast<uint32_t>(c));
  std::string escapes;
  for (const auto& [letter, meaning] :
       {std::pair('"', '"'), std::pair('\\', '\\'), std::pair('b', '\b'), std::pair('f', '\f'),
        std::pair('n', '\n'), std::pair('r', '\r'), std::pair('t', '\t')}) {
    if (!tree.children.contains(static_cast<uint32_t>(meaning))) {
      escapes += std::string(letter == '"' || letter == '\\' ? "\\" : "") + letter;
    }
  }
  std::string ways;
  for (const auto& [c, child] : tree.children) {
    taken.add(c, c);
    std::string character;
    utf8::append(character, c);
    const std::string spelled = Schema(character).dump();
    ways += fmt::format("{} {} | ", gbnf_literal(spelled.substr(1, spelled.size() - 2)),
                        other_rests(rules, child, wish));
  }
  const std::string others =
      gbnf_class(taken.negated()) + (escapes.empty() ? "" : R"( | "\\" [)" + escapes + "]");
  return rules.add(wish, fmt::format(R"({}({}) {}* "\""{})", ways, others, rules.json("char"),
                                     tree.is_name ? "" : R"( | "\"")"));
}

const Schema& member_or(const Schema& schema, const char* name, const Schema& otherwise) {
  const auto found = schema.find(name);
  return found == schema.end() ? otherwise : *found;
}

}  // namespace

std::string SchemaReader::other_keys(const std::vector<std::string>& names,
                                     const std::string& place, const std::string& wish) {
  NameTree tree;
  for (const std::string& name : names) {
    NameTree* node = &tree;
    size_t n_characters = 0;
    for (size_t i = 0; i < name.size();) {
      if (++n_characters > kMostNameCharacters) {
        reject(place, fmt::format("the property '{}' has more than {} characters, which is not "
                                  "supported beside additionalProperties",
                                  shortened(name), kMostNameCharacters));
      }
      const size_t length = utf8::valid_length(std::string_view(name).substr(i));
      const auto [child, is_new] =
          node->children.try_emplace(utf8::code_point(name.data() + i, length));
      if (is_new && ++n_name_characters_ > kMostNameTrees) {
        reject(place, fmt::format("additionalProperties: too large: the names of the properties "
                                  "beside it have more than {} different beginnings",
                                  kMostNameTrees));
      }
      node = &child->second;
      i += length;
    }
    node->is_name = true;
  }
  return rules_.add(wish, R"("\"" )" + other_rests(rules_, tree, wish + "-rest"));
}

std::string repeated_items(const std::string& item, int64_t least, std::optional<int64_t> most) {
  if (most == 0) return "";
  const std::string more =
      fmt::format("(\",\" space {}){{{},{}}}", item, std::max<int64_t>(least - 1, 0),
                  most ? std::to_string(*most - 1) : "");
  return least > 0 ? fmt::format("{} {}", item, more) : fmt::format("({} {})?", item, more);
}

std::string SchemaReader::read_more_members(const Schema& schema,
                                            const std::vector<std::string>& names,
                                            const std::string& place, const std::string& wish) {
  const auto more = schema.find("additionalProperties");
  if (more == schema.end() || *more == false) return "";
  const std::string value =
      read(*more, place + "/additionalProperties", wish + "-additional-value");
  const std::string key = names.empty() ? rules_.json("string")  //
                                        : other_keys(names, place, wish + "-additional-key");
  return rules_.add(wish + "-additional",
                    fmt::format(R"({} ":" {} {})", key, rules_.json("space"), value));
}

std::string SchemaReader::read_object(const Schema& schema, const std::string& place,
                                      const std::string& wish) {
  static const Schema kNoProperties = Schema::object(), kNoNames = Schema::array(), kAny = true;
  const Schema& properties = member_or(schema, "properties", kNoProperties);
  const Schema& required = member_or(schema, "required", kNoNames);
  if (!properties.is_object()) reject(place, "properties must be an object");
  if (!required.is_array()) reject(place, "required must be a list of names");
  // As in llama.cpp: an object without any constraint may contain anything, but one with properties
  // has no others unless the schema says so.
  const Schema& others = member_or(schema, "additionalProperties", kAny);
  if (properties.empty() && required.empty()) return read_map(schema, place, wish);
  std::set<std::string> needed;
  for (const Schema& name : required) {
    if (!name.is_string()) reject(place, "required must be a list of names");
    needed.insert(name.get<std::string>());
  }
  std::vector<Member> members;
  std::vector<std::string> names;
  std::set<std::string> known;
  const auto add_member = [&](const std::string& name, const std::string& value) {
    names.push_back(name);
    known.insert(name);
    members.emplace_back(
        rules_.add(wish + "-" + shortened(name) + "-member",
                   fmt::format(R"({} {} ":" {} {})", gbnf_literal(Schema(name).dump()),
                               rules_.json("space"), rules_.json("space"), value)),
        needed.contains(name));
  };
  for (const auto& [name, property] : properties.items()) {
    if (property == false && !needed.contains(name)) continue;
    add_member(name, read(property, place + "/properties/" + shortened(name),
                          wish + "-" + shortened(name)));
  }
  for (const Schema& each : required) {  // names found only in `required` may have any value
    const auto& name = each.get_ref<const std::string&>();
    if (known.contains(name)) continue;
    add_member(name, read(others, place + "/required", wish + "-" + shortened(name)));
  }
  const std::string more = read_more_members(schema, names, place, wish);
  check_members(schema, members, !more.empty(), place);
  return join_members(members, more, wish);
}

void SchemaReader::check_members(const Schema& schema, const std::vector<Member>& members,
                                 bool has_more, const std::string& place) {
  const auto refuse = [&](const char* keyword) {
    leave_out(keyword, place, fmt::format("{} beside properties is not supported", keyword));
  };
  const auto n_required = std::count_if(members.begin(), members.end(),
                                        [](const Member& member) { return member.second; });
  const auto least = count_of(schema, "minProperties", place);
  const auto most = count_of(schema, "maxProperties", place);
  if (least && *least > n_required) refuse("minProperties");
  if (most && (has_more || *most < std::ssize(members))) refuse("maxProperties");
  if (schema.contains("propertyNames") && has_more) refuse("propertyNames");
  if (schema.contains("patternProperties")) refuse("patternProperties");
}

std::string SchemaReader::map_member(const Schema& schema, const std::string& place,
                                     const std::string& wish) {
  const std::string space = rules_.json("space");
  const auto member = [&](const std::string& key, const std::string& value) {
    return rules_.add(wish + "-member", fmt::format(R"({} ":" {} {})", key, space, value));
  };
  const auto patterns = schema.find("patternProperties");
  if (patterns != schema.end() && !patterns->is_object()) {
    reject(place, "patternProperties must be an object");
  }
  if (patterns != schema.end() && !patterns->empty()) {
    if (schema.contains("propertyNames")) {
      leave_out("propertyNames", place, "propertyNames beside patternProperties is not supported");
    }
    if (patterns->size() > 1) {
      leave_out("patternProperties", place, "more than one of patternProperties is not supported");
    }
    std::string all;
    for (const auto& [pattern, value] : patterns->items()) {
      if (value == false) continue;
      const std::string key =
          read_string({{"pattern", pattern}}, place + "/patternProperties/" + shortened(pattern));
      all += (all.empty() ? "" : " | ") +
             member(key, read(value, place + "/patternProperties/" + shortened(pattern),
                              wish + "-value"));
    }
    return all.empty() ? "" : "(" + all + ")";
  }
  static const Schema kAny = true;
  const Schema& others = member_or(schema, "additionalProperties", kAny);
  if (others == false) return "";
  const auto names = schema.find("propertyNames");
  const std::string key =
      names == schema.end() ? rules_.json("string")
                            : read({{"allOf", Schema::array({Schema{{"type", "string"}}, *names})}},
                                   place + "/propertyNames", wish + "-key");
  return member(key, read(others, place + "/additionalProperties", wish + "-value"));
}

std::string SchemaReader::read_map(const Schema& schema, const std::string& place,
                                   const std::string& wish) {
  static const Schema kAny = true;
  const std::optional<int64_t> least = count_of(schema, "minProperties", place);
  const std::optional<int64_t> most = count_of(schema, "maxProperties", place);
  // as llama.cpp: one with properties, even with none of them, has no others unless it says so
  const bool is_named = schema.contains("properties") || schema.contains("required");
  const bool is_closed =
      is_named && !schema.contains("additionalProperties") && !schema.contains("patternProperties");
  const bool says_nothing = !least && !most && !schema.contains("patternProperties") &&
                            !schema.contains("propertyNames") && !is_named;
  if (says_nothing && member_or(schema, "additionalProperties", kAny) == true) {
    return rules_.json("object");
  }
  if (least && most && *least > *most) {
    reject(place,
           fmt::format("minProperties {} and maxProperties {}: no object has both", *least, *most));
  }
  const std::string member = is_closed || most == 0 ? "" : map_member(schema, place, wish);
  if (member.empty() && least.value_or(0) > 0) {
    reject(place, fmt::format("minProperties {}, and no member is allowed", *least));
  }
  rules_.json("space");
  const std::string members =
      member.empty() ? "" : repeated_items(member, least.value_or(0), most) + " space ";
  return rules_.add(wish + "-object", fmt::format(R"("{{" space {}"}}")", members));
}

std::string SchemaReader::join_members(const std::vector<Member>& members, const std::string& more,
                                       const std::string& wish) {
  // From the last member to the first: `first` is what may follow if no member was written before,
  // and `rest` what may follow if one was.
  std::string first = more.empty() ? "" : fmt::format("({} (\",\" space {})*)?", more, more);
  std::string rest = more.empty() ? "" : fmt::format("(\",\" space {})*", more);
  for (size_t i = members.size(); i-- > 0;) {
    const auto& [member, is_required] = members[i];
    const std::string after = rest.empty() ? "" : " " + rules_.add(wish + "-rest", rest);
    const std::string none = first.empty() ? "\"\"" : first;
    first = is_required ? member + after : fmt::format("({}{} | {})", member, after, none);
    rest = fmt::format("(\",\" space {}){}{}", member, is_required ? "" : "?", after);
    if (i > 0 && !is_required) first = rules_.add(wish + "-first", first);
  }
  rules_.json("space");
  return rules_.add(wish + "-object", fmt::format(R"("{{" space {} space "}}")", first));
}

std::string SchemaReader::read_array(const Schema& schema, const std::string& place,
                                     const std::string& wish) {
  static const Schema kNone = Schema::array(), kAny = true, kNothing = false;
  const bool is_old = member_or(schema, "items", kAny).is_array();  // drafts before 2020-12
  const Schema& tuple = member_or(schema, is_old ? "items" : "prefixItems", kNone);
  const Schema& items = member_or(schema, is_old ? "additionalItems" : "items",
                                  is_old || !tuple.empty() ? kNothing  //
                                                           : kAny);
  if (!tuple.is_array()) reject(place, "prefixItems must be a list of schemas");
  const auto n_tuple = static_cast<int64_t>(tuple.size());
  if (schema.value("uniqueItems", Schema()) == true && schema.value("maxItems", 2) > 1) {
    leave_out("uniqueItems", place, "the keyword uniqueItems is not supported");
  }
  const int64_t least = count_of(schema, "minItems", place).value_or(n_tuple);
  std::optional<int64_t> most = count_of(schema, "maxItems", place);
  if (items == false) most = std::min(most.value_or(n_tuple), n_tuple);
  if (most && std::max(least, std::min(n_tuple, *most)) > *most) {
    reject(place, fmt::format("minItems {} and maxItems {}: no array has both", least, *most));
  }
  rules_.json("space");
  std::string members;
  const int64_t n_written = std::min(n_tuple, most.value_or(n_tuple));
  for (int64_t i = 0; i < n_written; ++i) {
    const auto index = static_cast<size_t>(i);
    members += (i > 0 ? " \",\" space " : "") + read(tuple[index],
                                                     fmt::format("{}/prefixItems/{}", place, i),
                                                     fmt::format("{}-{}", wish, i));
  }
  if (items != false && (!most || *most > n_tuple)) {
    const std::string item =
        rules_.add(wish + "-item", read(items, place + "/items", wish + "-item"));
    const int64_t more_least = std::max<int64_t>(least - n_tuple, 0);
    const std::optional<int64_t> more_most = most ? std::optional(*most - n_tuple) : std::nullopt;
    members += n_tuple == 0 ? repeated_items(item, more_least, more_most)
                            : fmt::format(" (\",\" space {}){{{},{}}}", item, more_least,
                                          more_most ? std::to_string(*more_most) : "");
  }
  return rules_.add(wish + "-array", fmt::format(R"("[" space {} space "]")", members));
}

}  // namespace snapkv::grammar
