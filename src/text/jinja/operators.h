// SPDX-License-Identifier: MIT
// Operators with Python's meaning, and conversions of values to text.
#pragma once

#include <string>
#include <string_view>

#include "text/jinja/value.h"

namespace snapkv::jinja {

class Interpreter;

/// a op b for + - * / // % **. Throws for types that Python cannot combine, for division by zero
/// and for integers beyond 64 bits.
Value arithmetic(Interpreter& in, std::string_view op, const Value& a, const Value& b);
/// -a, +a
Value signed_value(std::string_view sign, const Value& a);
/// item in container
bool contains(Interpreter& in, const Value& container, const Value& item);

/// Appends what {{ value }} prints: Python's str().
void print(Budget& budget, const Value& value, TextBuilder& out);
/// Appends Python's repr(): texts are in quotes.
void print_repr(Budget& budget, const Value& value, TextBuilder& out);
/// str(value)
TextPtr to_text(Budget& budget, const Value& value);
/// The repr() of a number: 1.0, 1e+20, inf
std::string number_repr(double number);

/// Replaces HTML's special characters & < > " '; a text that is already markup stays as it is.
TextPtr escaped(Budget& budget, const TextPtr& text);

/// The items of any iterable value. Throws if Python cannot iterate over it.
std::vector<Value> items_of(Interpreter& in, const Value& value);
bool is_iterable(const Value& value);
/// len(); throws if the value has no length.
int64_t length_of(const Value& value);

}  // namespace snapkv::jinja
