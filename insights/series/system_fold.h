// Samples of nodes into the store of series: sweeps put together, cores and devices folded.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/frame.h"
#include "core/frame_body.h"
#include "core/time.h"
#include "insights/series/series_writer.h"

namespace tocsin::insights {

/// A name as agents write it, "system.cpu.utilization{cpu.logical_number=3,cpu.mode=user}", in its halves.
struct SeriesLabel {
  std::string_view metric, labels;
};
SeriesLabel split_series(std::string_view text);
/// The value of one attribute of `labels`; empty: there is none.
std::string_view label_of(std::string_view labels, std::string_view key);

/// What is kept of the samples of a node:
/// of a core `system.cpu.busy` (1 − idle − iowait) and `system.cpu.iowait` in place of eight modes;
/// of counters what they have grown by since the sample before, nothing where one has fallen; of bytes through
/// networks and disks that per second too, as `system.network.io.rate` and `system.disk.io.rate`;
/// of the rest the samples. Further `{mean}` over cores and over GPUs, and `{total}` of the two of the network.
/// A sweep is folded when the next one begins, or when nothing came to it for a while. Not thread-safe.
class SystemFold {
 public:
  /// Inside a commit of the store's.
  void take(const core::FrameView& frame, const core::FrameBody& body, core::Duration now,
            SeriesWriter& into);
  /// Before a commit: folds what is over, keeps what is not. True: something was folded.
  bool settle(core::Duration now, SeriesWriter& into);

 private:
  enum class Role : std::uint8_t {
    plain,
    cpu_idle,
    cpu_iowait,
    cpu_other,
    gpu_busy,
    gpu_memory,
    network
  };
  struct Sent {
    std::string text;
    Role role = Role::plain;
    std::string core;
    std::string rate;  // the series of what it is per second; empty: none is kept
  };
  struct Sample {
    std::uint64_t series = 0;
    double value = 0;
    bool counter = false;
  };
  // What a counter said last.
  struct Count {
    double value = 0;
    std::int64_t time = -1;  // milliseconds; -1: not known
  };
  // One agent's sweep for one run.
  struct Sweep {
    std::int64_t time = -1;  // milliseconds; -1: none is open
    std::vector<Sample> samples;
    core::Duration grown{};
  };
  struct Agent {
    SegmentOf segment;
    std::int64_t folded = -1;                         // the newest sweep, milliseconds
    std::unordered_map<std::uint64_t, Count> counts;  // by series, of that sweep or before
    std::map<core::RunUid, Sweep> sweeps;
    bool changed = false;
  };
  struct Node {
    std::unordered_map<std::uint64_t, Sent> names;
    std::unordered_map<std::string, std::uint64_t> made;  // hashes of names of our own making
  };
  struct Turn;  // of folding one sweep

  static Sent described(std::string_view text);
  Node& node_of(const core::RunUid& owner, SeriesWriter& into);
  Agent& agent_of(const SegmentOf& segment, SeriesWriter& into);
  void take_names(const core::RunUid& owner, const core::Dictionary& names, SeriesWriter& into);
  void take_rows(const core::FrameView& frame, core::Duration now, SeriesWriter& into);
  void fold(Agent& agent, Sweep& sweep, SeriesWriter& into);
  static void fold_samples(Turn& turn, const std::vector<Sample>& samples);
  static void put(Turn& turn, const std::string& text, double value);
  static void restore(Agent& agent, std::string_view bytes);
  static std::string kept(const Agent& agent);

  std::map<core::RunUid, Node> nodes_;
  std::map<std::pair<core::RunUid, std::uint64_t>, Agent> agents_;  // by incarnation
};

}  // namespace tocsin::insights
