// What the watched training processes use of the machine.
//
// Gathers   per process.pid=P: process.cpu.utilization{cpu.mode=user|system,…}, share of all
//           processors that are online; process.memory.usage{…}, resident bytes;
//           process.disk.io{disk.io.direction=read|write,…}, monotonic counters in bytes;
//           process.threads{…}
// Every     sweep; utilization from the second on; nothing while no process is watched
// Cost      3 to 8 µs per process (two reads)
// Source    proc(5) /proc/<pid>/stat and io; names: OpenTelemetry semantic conventions, process
//           metrics. The disk counters need the process's own user or CAP_SYS_PTRACE and are left
//           out without
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collectors/node/collector.h"
#include "collectors/node/proc_file.h"
#include "collectors/node/procfs.h"
#include "core/process_identity.h"

namespace tocsin::collectors {
namespace {

// The open descriptors belong to this very process: when it has ended, reading them fails, even if
// another one got its number.
struct Watched {
  Watched(const std::string& proc, std::int64_t number)
      : pid(number),
        stat(proc + "/" + std::to_string(pid) + "/stat"),
        io(proc + "/" + std::to_string(pid) + "/io") {
    const std::string self = "process.pid=" + std::to_string(pid) + "}";
    user = std::make_unique<Series>("process.cpu.utilization{cpu.mode=user," + self, false);
    system = std::make_unique<Series>("process.cpu.utilization{cpu.mode=system," + self, false);
    memory = std::make_unique<Series>("process.memory.usage{" + self, false);
    read = std::make_unique<Series>("process.disk.io{disk.io.direction=read," + self, true);
    write = std::make_unique<Series>("process.disk.io{disk.io.direction=write," + self, true);
    threads = std::make_unique<Series>("process.threads{" + self, false);
  }

  std::int64_t pid;
  ProcFile stat;
  ProcFile io;
  bool io_refused = false;
  std::optional<core::ProcessStat> last;
  core::Duration last_time{};
  std::unique_ptr<Series> user, system, memory, read, write, threads;
};

class Process final : public Collector {
 public:
  explicit Process(const Roots& roots)
      : proc_(roots.proc),
        online_(roots.sys + "/devices/system/cpu/online"),
        ticks_per_second_(static_cast<double>(std::max(1L, ::sysconf(_SC_CLK_TCK)))),
        page_bytes_(static_cast<double>(std::max(1L, ::sysconf(_SC_PAGESIZE)))) {}

  void watch_process(std::int64_t pid) override {
    if (pid > 0 && find(pid) == watched_.end()) watched_.emplace_back(proc_, pid);
  }
  void forget_process(std::int64_t pid) override {
    if (const auto at = find(pid); at != watched_.end()) watched_.erase(at);
  }

  core::Status collect(Sweep& sweep) override {
    if (watched_.empty()) return core::ok();
    double processors = 1;
    if (const auto text = online_.read(); text) {
      processors = static_cast<double>(count_cpu_list(*text).value_or(1));
    }
    // One that has ended is dropped: its lifecycle record says how it went. One that cannot be read
    // this time says nothing and does not silence the others.
    std::erase_if(watched_, [&](Watched& process) {
      const core::Status status = collect_one(sweep, process, processors);
      return !status && status.error().code == core::Code::not_found;
    });
    return core::ok();
  }

 private:
  std::vector<Watched>::iterator find(std::int64_t pid) {
    return std::find_if(watched_.begin(), watched_.end(),
                        [pid](const Watched& process) { return process.pid == pid; });
  }

  core::Status collect_one(Sweep& sweep, Watched& process, double processors) const {
    const auto text = process.stat.read();
    if (!text) return text.error();
    const auto now = core::parse_process_stat(*text);
    if (!now) return core::Error{core::Code::data_loss, process.stat.path() + " cannot be read"};
    if (process.last && process.last->start_ticks == now->start_ticks) {
      const double seconds =
          std::chrono::duration<double>(sweep.monotonic() - process.last_time).count();
      const double available = seconds * ticks_per_second_ * processors;
      if (available > 0) {
        sweep.add(*process.user, share(now->user_ticks, process.last->user_ticks, available));
        sweep.add(*process.system, share(now->system_ticks, process.last->system_ticks, available));
      }
    }
    process.last = now;
    process.last_time = sweep.monotonic();
    sweep.add(*process.memory, static_cast<double>(now->resident_pages) * page_bytes_);
    sweep.add(*process.threads, static_cast<double>(now->threads));
    add_io(sweep, process);
    return core::ok();
  }

  static double share(std::uint64_t now, std::uint64_t before, double available) {
    const double spent = now > before ? static_cast<double>(now - before) : 0;
    return std::min(1.0, spent / available);  // ticks are coarse: a short interval can exceed 1
  }

  static void add_io(Sweep& sweep, Watched& process) {
    if (process.io_refused) return;
    const auto text = process.io.read();
    if (!text) {
      process.io_refused = text.error().code == core::Code::permission_denied;
      return;
    }
    if (const auto io = parse_process_io(*text)) {
      sweep.add(*process.read, static_cast<double>(io->read));
      sweep.add(*process.write, static_cast<double>(io->written));
    }
  }

  std::string proc_;
  ProcFile online_;
  double ticks_per_second_;
  double page_bytes_;
  std::vector<Watched> watched_;
};

constexpr Gathered kGathersProcess[] = {
    {"process.cpu.utilization", "cpu.mode=user,process.pid=P",
     "ratio 0…1 of all online processors"},
    {"process.cpu.utilization", "cpu.mode=system,process.pid=P",
     "ratio 0…1 of all online processors"},
    {"process.memory.usage", "process.pid=P", "bytes, resident"},
    {"process.disk.io", "disk.io.direction=read,process.pid=P", "bytes", true},
    {"process.disk.io", "disk.io.direction=write,process.pid=P", "bytes", true},
    {"process.threads", "process.pid=P", "threads"},
};

}  // namespace

CollectorDescriptor process() {
  return {.name = "process",
          .help = "processor, memory, disk and threads of the watched processes",
          .gathers = kGathersProcess,
          .read = &without_keys<Process>};
}

}  // namespace tocsin::collectors
