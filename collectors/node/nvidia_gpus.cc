#include "collectors/node/nvidia_gpus.h"

#include <algorithm>
#include <utility>

namespace tocsin::collectors {
namespace {

constexpr unsigned kMostProcesses = 65536;

}  // namespace

core::Status NvidiaGpus::collect(Sweep& sweep, const std::set<std::int64_t>& watched) {
  const core::Duration now = sweep.monotonic();
  if (!looked_ || now - *looked_ >= kGpusLookAgain) {
    looked_ = now;
    trouble_ = look();
  }
  if (!trouble_) return trouble_;
  const bool details = details_.due(now);
  const bool processes = !watched.empty() && process_list_.due(now);
  if (details) hear_xids(sweep);
  for (auto& [id, gpu] : gpus_) {
    if (!gpu->lost) quick(sweep, *gpu);
    if (details && !gpu->lost) thorough(sweep, *gpu);
    if (processes && !gpu->lost) add_processes(sweep, *gpu, watched);
    if (!gpu->instance) sweep.add(gpu->series.failed, gpu->lost ? 1 : 0);
    if (details && !gpu->instance) {
      sweep.add(gpu->series.unreadable, static_cast<double>(gpu->unreadable));
    }
  }
  return core::ok();
}

// The library, and what it lists. A GPU that is not listed any more has failed; an instance was
// taken away by its administrator.
core::Status NvidiaGpus::look() {
  if (library_ == nullptr) {
    auto opened = nvml::Library::open(file_);
    if (!opened) return opened.error();
    library_ = std::move(*opened);
  }
  unsigned count = 0;
  if (const int code = library_->count(&count); code != nvml::kSuccess) {
    const std::string why = library_->describe(code);
    close();  // the driver is gone or was replaced: begin again
    return core::Error{core::Code::unavailable, "the GPUs cannot be listed: " + why};
  }
  for (auto& [id, gpu] : gpus_) gpu->here = false;
  for (unsigned i = 0; i < count; ++i) {
    nvml::Device handle = nullptr;
    if (library_->device(i, &handle) != nvml::kSuccess) continue;
    note(handle, false);
    add_instances(handle);
  }
  std::erase_if(gpus_, [](const auto& one) { return one.second->instance && !one.second->here; });
  for (auto& [id, gpu] : gpus_) gpu->lost = !gpu->here;
  return core::ok();
}

void NvidiaGpus::add_instances(nvml::Device handle) {
  unsigned on = 0;
  unsigned pending = 0;
  unsigned most = 0;
  if (library_->mig_mode == nullptr || library_->mig_most == nullptr ||
      library_->mig_device == nullptr ||
      library_->mig_mode(handle, &on, &pending) != nvml::kSuccess || on == 0 ||
      library_->mig_most(handle, &most) != nvml::kSuccess) {
    return;
  }
  for (unsigned i = 0; i < most; ++i) {
    nvml::Device instance = nullptr;
    if (library_->mig_device(handle, i, &instance) == nvml::kSuccess) note(instance, true);
  }
}

void NvidiaGpus::note(nvml::Device handle, bool instance) {
  char uuid[nvml::kUuidBytes] = {};
  if (library_->uuid(handle, uuid, sizeof uuid) != nvml::kSuccess) return;
  std::unique_ptr<NvidiaGpu>& gpu = gpus_[uuid];
  if (gpu == nullptr) gpu = std::make_unique<NvidiaGpu>(uuid);
  gpu->handle = handle;
  gpu->instance = instance;
  gpu->here = true;
  if (!instance && !gpu->tells_xids) listen(*gpu);
}

void NvidiaGpus::listen(NvidiaGpu& gpu) {
  if (library_->event_set == nullptr || library_->register_events == nullptr ||
      library_->wait_event == nullptr) {
    return;
  }
  if (events_ == nullptr && library_->event_set(&events_) != nvml::kSuccess) return;
  gpu.tells_xids = library_->register_events(gpu.handle, nvml::kXid, events_) == nvml::kSuccess;
}

/// False: no value. What a GPU does not offer is no failure of it.
bool NvidiaGpus::good(int code, NvidiaGpu& gpu) {
  if (code == nvml::kSuccess) return true;
  if (code == nvml::kGpuIsLost) gpu.lost = true;
  if (code == nvml::kUninitialized) looked_.reset();  // somebody else has ended the library
  if (code != nvml::kNotSupported) ++gpu.unreadable;
  return false;
}

void NvidiaGpus::quick(Sweep& sweep, NvidiaGpu& gpu) {
  nvml::Utilization busy;
  if (!gpu.instance && library_->utilization != nullptr &&
      good(library_->utilization(gpu.handle, &busy), gpu)) {
    sweep.add(gpu.series.busy, std::min(busy.gpu, 100U) / 100.0);
  }
  nvml::Memory memory;
  if (library_->memory != nullptr && good(library_->memory(gpu.handle, &memory), gpu)) {
    gpu.series.add_memory(sweep, static_cast<double>(memory.used),
                          static_cast<double>(memory.total));
  }
}

void NvidiaGpus::thorough(Sweep& sweep, NvidiaGpu& gpu) {
  if (gpu.instance) return;
  unsigned number = 0;
  const auto read = [&](int (*function)(nvml::Device, unsigned*), const Series& into) {
    if (function != nullptr && good(function(gpu.handle, &number), gpu)) {
      sweep.add(into, number / 1000.0);
    }
  };
  read(library_->power, gpu.series.power);
  read(library_->power_limit, gpu.series.power_limit);
  if (library_->temperature != nullptr &&
      good(library_->temperature(gpu.handle, nvml::kTemperatureGpu, &number), gpu)) {
    sweep.add(gpu.series.temperature, number);
  }
  unsigned long long bits = 0;
  if (library_->throttled != nullptr && good(library_->throttled(gpu.handle, &bits), gpu)) {
    sweep.add(gpu.series.by_power, (bits & nvml::kPowerCap) != 0 ? 1 : 0);
    sweep.add(gpu.series.by_heat, (bits & nvml::kThermal) != 0 ? 1 : 0);
    sweep.add(gpu.series.by_hardware, (bits & nvml::kHardware) != 0 ? 1 : 0);
  }
  const auto errors = [&](int type, const Series& into) {
    if (library_->ecc_errors != nullptr &&
        good(library_->ecc_errors(gpu.handle, type, nvml::kAggregate, &bits), gpu)) {
      sweep.add(into, static_cast<double>(bits));
    }
  };
  errors(nvml::kCorrected, gpu.series.corrected);
  errors(nvml::kUncorrected, gpu.series.uncorrected);
  if (gpu.tells_xids) sweep.add(gpu.series.xids, static_cast<double>(gpu.xids));
}

// Those that came since the sweep before; never waits. The newest of each GPU is told by number.
void NvidiaGpus::hear_xids(Sweep& sweep) {
  constexpr int kMostAtOnce = 1000;
  if (events_ == nullptr) return;
  std::map<NvidiaGpu*, unsigned long long> newest;
  nvml::EventData event;
  for (int i = 0; i < kMostAtOnce && library_->wait_event(events_, &event, 0) == nvml::kSuccess;
       ++i) {
    if ((event.type & nvml::kXid) == 0) continue;
    for (auto& [id, gpu] : gpus_) {
      if (gpu->handle != event.device) continue;
      ++gpu->xids;
      newest[gpu.get()] = event.data;
    }
  }
  for (const auto& [gpu, number] : newest) {
    sweep.add(gpu->series.xid, static_cast<double>(number));
  }
}

void NvidiaGpus::add_processes(Sweep& sweep, NvidiaGpu& gpu,
                               const std::set<std::int64_t>& watched) {
  if (library_->processes == nullptr) return;
  auto count = static_cast<unsigned>(infos_.size());
  int code = library_->processes(gpu.handle, &count, infos_.data());
  while (code == nvml::kInsufficientSize && infos_.size() < kMostProcesses) {
    infos_.resize(infos_.size() * 2);
    count = static_cast<unsigned>(infos_.size());
    code = library_->processes(gpu.handle, &count, infos_.data());
  }
  if (!good(code, gpu)) return;
  std::map<std::int64_t, double> bytes;
  for (unsigned i = 0; i < std::min<std::size_t>(count, infos_.size()); ++i) {
    const auto pid = static_cast<std::int64_t>(infos_[i].pid);
    if (infos_[i].used_memory == nvml::kUnknownMemory || !watched.contains(pid)) continue;
    bytes[pid] += static_cast<double>(infos_[i].used_memory);
  }
  std::erase_if(gpu.series.processes, [&](const auto& one) { return !bytes.contains(one.first); });
  for (const auto& [pid, used] : bytes) {
    std::unique_ptr<Series>& series = gpu.series.processes[pid];
    if (series == nullptr) {
      series = std::make_unique<Series>("tocsin.gpu.process.memory{" + gpu.series.self +
                                            ",process.pid=" + std::to_string(pid) + "}",
                                        false);
    }
    sweep.add(*series, used);
  }
}

void NvidiaGpus::close() {
  if (events_ != nullptr && library_ != nullptr && library_->free_event_set != nullptr) {
    library_->free_event_set(events_);
  }
  events_ = nullptr;
  library_.reset();
  for (auto& [id, gpu] : gpus_) gpu->tells_xids = false;
}

}  // namespace tocsin::collectors
