// An expression over the columns of a frame, for many of its rows at once: what code.* does instruction
// by instruction for one row is done here instruction by instruction for all of them, with the same
// answers.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "rules/declared/code.h"

namespace tocsin::rules::declared {

/// Rows that are computed at once, at most.
inline constexpr std::size_t kBlockRows = 128;

/// One number of each row.
using BlockColumn = std::array<double, kBlockRows>;

/// Whether `code` looks at nothing but its row and the first so many aggregates, and has few numbers on
/// the stack at once.
bool fits_block(std::span<const Instruction> code, std::size_t aggregates = 0);

/// Values of `code`, which fits, of as many rows as there is room for (at most kBlockRows), from row
/// `from` on. `point`: what the rows of the batch share; `aggregates`: what they come to for each row.
void run_block(std::span<const Instruction> code, const Point& point, std::size_t from,
               std::span<double> values, std::span<const BlockColumn> aggregates = {});

}  // namespace tocsin::rules::declared
