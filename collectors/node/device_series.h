// Two counters per device, found again by name at every sweep.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/node/collector.h"

namespace tocsin::collectors {

/// Devices come and go; a series keeps its address while its device is there, so that samples of
/// the running sweep can point at it. Call begin(), add() for each device, end().
class DeviceCounters {
 public:
  using Name = std::string (*)(std::string_view device, bool outgoing);
  /// `name` spells the series of a device: the incoming (received, read) and the outgoing one.
  explicit DeviceCounters(Name name) : name_(name) {}

  void begin() noexcept { next_ = 0; }

  void add(Sweep& sweep, std::string_view device, std::uint64_t in, std::uint64_t out) {
    Entry& entry = find(device);
    entry.seen = true;
    sweep.add(entry.in, static_cast<double>(in));
    sweep.add(entry.out, static_cast<double>(out));
  }

  void end() {
    std::erase_if(entries_, [](const std::unique_ptr<Entry>& entry) { return !entry->seen; });
    for (const auto& entry : entries_) entry->seen = false;
  }

 private:
  struct Entry {
    std::string device;
    Series in;
    Series out;
    bool seen;
  };

  // The kernel lists devices in the same order every time, so the next one is nearly always it.
  Entry& find(std::string_view device) {
    if (next_ < entries_.size() && entries_[next_]->device == device) return *entries_[next_++];
    const auto at = std::find_if(entries_.begin(), entries_.end(),
                                 [&](const auto& entry) { return entry->device == device; });
    next_ = static_cast<std::size_t>(at - entries_.begin()) + 1;
    if (at != entries_.end()) return **at;
    entries_.push_back(std::make_unique<Entry>(Entry{
        std::string(device), {name_(device, false), true}, {name_(device, true), true}, false}));
    return *entries_.back();
  }

  Name name_;
  std::size_t next_ = 0;
  std::vector<std::unique_ptr<Entry>> entries_;
};

}  // namespace tocsin::collectors
