// SPDX-License-Identifier: MIT
// Operators with Python's meaning, and the ways a value becomes text. Called by expressions,
// filters and methods.
#pragma once

#include <string>
#include <string_view>

#include "text/jinja/value.h"

namespace snapkv::jinja {

class Interpreter;

/// a op b for + - * / // % **. Throws for types that Python can't combine, for a division by zero
/// and for integers beyond 64 bits.
Value arithmetic(Interpreter& in, std::string_view op, const Value& a, const Value& b);
/// -a, +a
Value signed_value(std::string_view sign, const Value& a);
/// item in container
bool contains(Interpreter& in, const Value& container, const Value& item);

/// Appends what {{ value }} shows: Python's str().
void print(Budget& budget, const Value& value, TextBuilder& out);
/// Appends Python's repr(): texts in quotes.
void print_repr(Budget& budget, const Value& value, TextBuilder& out);
/// str(value)
TextPtr to_text(Budget& budget, const Value& value);
/// repr() of a number: 1.0, 1e+20, inf
std::string number_repr(double number);

/// HTML's characters & < > " ' replaced; a text that is markup already stays.
TextPtr escaped(Budget& budget, const TextPtr& text);

/// For loops, filters and functions that read any iterable: its items. Throws for what Python can't
/// iterate.
std::vector<Value> items_of(Interpreter& in, const Value& value);
bool is_iterable(const Value& value);
/// len(); throws for what has none.
int64_t length_of(const Value& value);

}  // namespace snapkv::jinja
