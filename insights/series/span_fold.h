// Spans of workers into the store of series, and the seconds of each step's phases as curves.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "core/frame.h"
#include "core/frame_body.h"
#include "insights/series/series_writer.h"

namespace tocsin::insights {

/// The hash of a span's name in its two columns.
struct NameHalves {
  double high = 0, low = 0;
};
NameHalves halves_of(std::uint64_t hash);
std::uint64_t whole_of(double high, double low);

/// Every span is kept, by track. Of the track `phase` what each name took in a step is the scalar
/// `phase/<name>`, once a later step begins or the step's end is told. Not thread-safe.
class SpanFold {
 public:
  /// Inside a commit of the store's; before fold_frame gets the same frame.
  void take(const core::FrameView& frame, const core::FrameBody& body, SeriesWriter& into);
  /// Before a commit: keeps what steps have begun.
  void settle(SeriesWriter& into);

 private:
  struct Phases {
    std::int64_t step = -1;
    std::map<std::uint64_t, double> nanos;  // by the name of the phase
    double time = 0;                        // microseconds: the latest end
  };
  struct Worker {
    SegmentOf segment;
    std::map<core::Mode, Phases> modes;
    bool changed = false;
  };
  using Names = std::unordered_map<std::uint64_t, std::string>;
  using WorkerKey = std::tuple<core::RunUid, std::uint64_t, std::uint64_t, std::uint32_t>;

  Worker& worker_of(const SegmentOf& segment, SeriesWriter& into);
  Names& names_of(const core::RunUid& run, SeriesWriter& into);
  void take_names(const core::RunUid& run, const core::Dictionary& names, SeriesWriter& into);
  void take_spans(const core::FrameView& frame, const SegmentOf& segment, SeriesWriter& into);
  void end_step(Worker& worker, core::Mode mode, SeriesWriter& into);
  static void restore(Worker& worker, std::string_view bytes);
  static std::string kept(const Worker& worker);

  std::map<core::RunUid, Names> names_;
  std::map<WorkerKey, Worker> workers_;
};

}  // namespace tocsin::insights
