// Where the time of a run and of its devices went: its loop, and the operations that took most.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "insights/series/series_reader.h"

namespace tocsin::insights {

/// The steps of one attempt, of all its workers and modes: microseconds, UTC.
struct LoopPart {
  std::int64_t attempt = 0;
  double begin = 0, end = 0;
};
/// In order of time; nothing without a step clock.
std::vector<LoopPart> ask_loop(SeriesReader& reader, const std::string& run);

struct OperationLine {
  std::string device;  // "GPU" or "CPU"
  std::string name;
  std::int64_t calls = 0;
  double seconds = 0;  // its own: without what ran inside it
  double share = 0;    // of the device's
};
struct OperationAnswer {
  std::vector<OperationLine> lines;  // GPU first, greatest first
  std::int64_t spans = 0;            // that were looked at
  bool cut = false;                  // there are more
};
/// Of the tracks `op.cpu` and `op.gpu/…`.
OperationAnswer ask_operations(SeriesReader& reader, const std::string& run, std::size_t most);

}  // namespace tocsin::insights
