// The words that every memory begins with, and how numbers stand in words.
#pragma once

#include <bit>
#include <cstdint>

namespace tocsin::rules::declared {

enum Head : std::uint32_t {
  kStep,   // of the newest point
  kFirst,  // where the axis began
  kTotal,  // points so far
  // Those are all that a window has which keeps its steps as marks (marks.h).
  kMarkedWords,
  kTime = kMarkedWords,  // of the newest point
  kTail,                 // number of the first one in the window that was judged last
  kEnd,                  // axis: last place of that window
  kLost,                 // axis: newest place whose point had to make room
  kPiece,                // axis: end of the open piece, exclusive
  kOpen,                 // whether there is one
  kHeadWords
};

inline std::int64_t whole(std::uint64_t word) { return static_cast<std::int64_t>(word); }
inline std::uint64_t word(std::int64_t value) { return static_cast<std::uint64_t>(value); }
inline double real(std::uint64_t bits) { return std::bit_cast<double>(bits); }
inline std::uint64_t bits(double value) { return std::bit_cast<std::uint64_t>(value); }

}  // namespace tocsin::rules::declared
