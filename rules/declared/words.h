// The names that expressions may use, in tables: fields of points, functions, folds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rules/declared/code.h"
#include "rules/declared/memory.h"
#include "rules/declared/syntax.h"

namespace tocsin::rules::declared {

/// Of one point of such a selection; nullopt: it has no such name.
std::optional<std::uint16_t> field_named(std::string_view name, Selector::Source source);
/// "unknown name mena; did you mean mean?", or why the name is none of this selection's.
std::string unknown_function(std::string_view name);
std::string unknown_name(std::string_view name, Selector::Source source,
                         const std::vector<std::string>& labels);
/// A name that every point of such a selection has.
std::string_view example_of(Selector::Source source);

/// + - * / < <= > >= == != and or
Op operator_named(std::string_view text);
constexpr bool compares(Op op) noexcept { return op >= Op::less && op <= Op::not_equal; }
/// abs log10 sqrt finite min2 max2
std::optional<Op> simple_named(std::string_view name);
std::optional<Kind> kind_named(std::string_view name);
std::optional<Formula::Fold::Kind> fold_named(std::string_view name);
const std::vector<std::string>& fold_names();
const std::vector<std::string>& function_names();

std::string listed(const std::vector<std::string>& names);

}  // namespace tocsin::rules::declared
