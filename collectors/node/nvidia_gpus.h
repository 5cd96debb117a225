// NVIDIA's GPUs of this node and their instances (MIG), found again once a minute.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "collectors/node/gpu_series.h"
#include "collectors/node/nvml.h"

namespace tocsin::collectors {

/// How often GPUs are looked for.
inline constexpr core::Duration kGpusLookAgain = std::chrono::minutes(1);

/// A GPU, or an instance of one.
struct NvidiaGpu {
  explicit NvidiaGpu(const std::string& id) : series(id) {}
  nvml::Device handle = nullptr;
  bool instance = false;
  bool lost = false;
  bool here = false;  // in the newest list
  bool tells_xids = false;
  std::uint64_t xids = 0;
  std::uint64_t unreadable = 0;
  GpuSeries series;
};

class NvidiaGpus {
 public:
  /// `details`, `processes`: how often at most these are read; 0: never.
  NvidiaGpus(std::string library, core::Duration details, core::Duration processes)
      : file_(std::move(library)), details_{details}, process_list_{processes} {}
  ~NvidiaGpus() { close(); }
  NvidiaGpus(const NvidiaGpus&) = delete;
  NvidiaGpus& operator=(const NvidiaGpus&) = delete;

  /// `watched`: pids whose memory is told. not_found: no library, or no driver; unavailable: it is
  /// there and does not answer. Both are tried again once a minute.
  core::Status collect(Sweep& sweep, const std::set<std::int64_t>& watched);

 private:
  core::Status look();
  void add_instances(nvml::Device handle);
  void note(nvml::Device handle, bool instance);
  void listen(NvidiaGpu& gpu);
  bool good(int code, NvidiaGpu& gpu);
  void quick(Sweep& sweep, NvidiaGpu& gpu);
  void thorough(Sweep& sweep, NvidiaGpu& gpu);
  void hear_xids(Sweep& sweep);
  void add_processes(Sweep& sweep, NvidiaGpu& gpu, const std::set<std::int64_t>& watched);
  void close();

  std::string file_;
  Pace details_, process_list_;
  std::optional<core::Duration> looked_;
  core::Status trouble_ = core::ok();
  std::unique_ptr<nvml::Library> library_;
  nvml::EventSet events_ = nullptr;
  std::map<std::string, std::unique_ptr<NvidiaGpu>> gpus_;  // by UUID
  std::vector<nvml::ProcessInfo> infos_ = std::vector<nvml::ProcessInfo>(64);
};

}  // namespace tocsin::collectors
