// Values of a JSON tape that have no fields of their own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/fields/archive.h"
#include "core/fields/json_tape.h"
#include "core/labels.h"

namespace tocsin::core {

/// The value at `index`. Returns what is expected there; empty: it was that, and `out` has it. Else
/// `out` is as it was, or holds what of a map was right.
std::string_view json_value(const JsonTape& tape, std::uint32_t index, std::string& out);
std::string_view json_value(const JsonTape& tape, std::uint32_t index, bool& out);
std::string_view json_value(const JsonTape& tape, std::uint32_t index, double& out);
std::string_view json_value(const JsonTape& tape, std::uint32_t index, WallTime& out);
std::string_view json_value(const JsonTape& tape, std::uint32_t index, RunUid& out);
std::string_view json_value(const JsonTape& tape, std::uint32_t index, Labels& out);
std::string_view json_value(const JsonTape& tape, std::uint32_t index, ValueMap& out);
std::string_view json_value(const JsonTape& tape, std::uint32_t index, archive::Texts& out);
/// A text; what is none as its JSON.
void json_any_text(const JsonTape& tape, std::uint32_t index, std::string& out);
/// nullopt: it is no whole number.
std::optional<std::int64_t> json_whole(const JsonTape& tape, std::uint32_t index);

}  // namespace tocsin::core
