// What the control group (version 2) that we run in uses of what it may.
//
// Gathers   container.cpu.utilization, share of the quota (cpu.max), else of the group's
//           processors; container.memory.usage in bytes; tocsin.cgroup.memory.limit in bytes, if there is one;
//           tocsin.cgroup.cpu.throttled, seconds, and tocsin.cgroup.memory.oom_kill: counters
// Every     sweep; cpu.utilization from the second on
// Cost      about 10 µs
// Source    the kernel's Documentation/admin-guide/cgroup-v2.rst. Version 1 groups are not read: on
//           such a host this collector reports not_found
#include <array>
#include <memory>
#include <optional>
#include <string>

#include "collectors/node/collector.h"
#include "collectors/node/proc_file.h"
#include "collectors/node/procfs.h"
#include "collectors/node/text_fields.h"

namespace tocsin::collectors {
namespace {

struct Group {
  explicit Group(const std::string& folder)
      : cpu_stat(folder + "/cpu.stat"),
        cpu_max(folder + "/cpu.max"),
        cpus(folder + "/cpuset.cpus.effective"),
        memory(folder + "/memory.current"),
        memory_max(folder + "/memory.max"),
        memory_events(folder + "/memory.events") {}
  ProcFile cpu_stat, cpu_max, cpus, memory, memory_max, memory_events;
  std::optional<std::uint64_t> last_usage;
  core::Duration last_time{};
};

class Container final : public Collector {
 public:
  explicit Container(const Roots& roots) : roots_(roots) {}

  core::Status collect(Sweep& sweep) override {
    if (!group_) {
      if (const core::Status found = find_group(); !found) return found;
    }
    const core::Status cpu = add_cpu(sweep);
    if (!cpu) {
      group_.reset();  // moved or removed: looked for again
      return cpu;
    }
    add_memory(sweep);
    return core::ok();
  }

 private:
  // Inside a cgroup name space the path of our own group is "/" though the mount shows it deeper,
  // and the other way round; whichever folder has the files is ours.
  core::Status find_group() {
    ProcFile self(roots_.proc + "/self/cgroup");
    const auto text = self.read();
    if (!text) return text.error();
    if (const auto path = parse_cgroup_path(*text)) {
      const std::string below = *path == "/" ? "" : std::string(*path);
      const std::string mount = roots_.sys + "/fs/cgroup";
      const std::string hybrid = mount + "/unified";
      for (const std::string& folder : std::array{mount + below, mount, hybrid + below, hybrid}) {
        ProcFile memory(folder + "/memory.current");  // the root group of a host has none
        if (memory.read()) {
          group_.emplace(folder);
          return core::ok();
        }
      }
    }
    return core::not_found("no control group of version 2 with a memory controller");
  }

  core::Status add_cpu(Sweep& sweep) {
    const auto text = group_->cpu_stat.read();
    if (!text) return text.error();
    const auto usage = parse_keyed(*text, "usage_usec");
    const auto throttled = parse_keyed(*text, "throttled_usec");
    if (!usage) return core::Error{core::Code::data_loss, group_->cpu_stat.path() + " lacks usage"};
    if (throttled) sweep.add(throttled_, static_cast<double>(*throttled) / 1e6);
    const auto processors = limit();
    if (group_->last_usage && *usage >= *group_->last_usage && processors) {
      const double seconds =
          std::chrono::duration<double>(sweep.monotonic() - group_->last_time).count();
      const double spent = static_cast<double>(*usage - *group_->last_usage) / 1e6;
      if (seconds > 0) sweep.add(utilization_, spent / (seconds * *processors));
    }
    group_->last_usage = usage;
    group_->last_time = sweep.monotonic();
    return core::ok();
  }

  // Processors that the group may use: its quota, else its set, else the machine's.
  std::optional<double> limit() {
    if (const auto text = group_->cpu_max.read(); text) {
      if (const auto quota = parse_cpu_max(*text)) return quota;
    }
    for (ProcFile* file : {&group_->cpus, &online_}) {
      if (const auto text = file->read(); text) {
        if (const auto count = count_cpu_list(*text)) return static_cast<double>(*count);
      }
    }
    return std::nullopt;
  }

  void add_memory(Sweep& sweep) {
    if (const auto bytes = number(group_->memory)) sweep.add(memory_, *bytes);
    if (const auto bytes = number(group_->memory_max)) sweep.add(memory_limit_, *bytes);
    if (const auto text = group_->memory_events.read(); text) {
      if (const auto kills = parse_keyed(*text, "oom_kill")) {
        sweep.add(oom_kill_, static_cast<double>(*kills));
      }
    }
  }

  static std::optional<double> number(ProcFile& file) {
    const auto text = file.read();
    if (!text) return std::nullopt;
    std::string_view line = *text;
    line = take_line(line);
    const auto value = take_u64(line);
    return value ? std::optional<double>(static_cast<double>(*value)) : std::nullopt;
  }

  Roots roots_;
  ProcFile online_{roots_.sys + "/devices/system/cpu/online"};
  std::optional<Group> group_;
  Series utilization_{"container.cpu.utilization", false};
  Series memory_{"container.memory.usage", false};
  Series memory_limit_{"tocsin.cgroup.memory.limit", false};
  Series throttled_{"tocsin.cgroup.cpu.throttled", true};
  Series oom_kill_{"tocsin.cgroup.memory.oom_kill", true};
};

constexpr Gathered kGathersContainer[] = {
    {"container.cpu.utilization", "",
     "ratio of the quota (`cpu.max`), else of the group's processors"},
    {"container.memory.usage", "", "bytes"},
    {"tocsin.cgroup.memory.limit", "", "bytes; absent without a limit"},
    {"tocsin.cgroup.cpu.throttled", "", "seconds", true},
    {"tocsin.cgroup.memory.oom_kill", "", "processes ended for lack of memory", true},
};

}  // namespace

CollectorDescriptor container() {
  return {.name = "container",
          .help = "processor and memory of our control group against its limits",
          .gathers = kGathersContainer,
          .read = &without_keys<Container>};
}

}  // namespace tocsin::collectors
