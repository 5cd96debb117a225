#include "app/cli/insights_rebuild.h"

#include <filesystem>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/api/store_refill.h"
#include "app/cli/looking.h"
#include "app/process/exit_code.h"
#include "core/value.h"
#include "insights/insights.h"

namespace tocsin::app {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kRunsOfALook = 500;
constexpr std::size_t kMostListed = 50;

/// What a store has of a run.
struct RunHeld {
  std::string job;
  std::int64_t issues = 0;
  std::int64_t rows = 0;
};
using RunsHeld = std::map<std::string, RunHeld>;

// Of files that are there; a missing one has nothing.
core::Result<RunsHeld> runs_held(const StorePaths& paths) {
  RunsHeld out;
  std::error_code unknown;
  if (fs::exists(paths.events, unknown)) {
    auto reader = insights::EventReader::open(paths.events);
    if (!reader) return reader.error().in(paths.events);
    std::optional<insights::EventReader::After> after;
    for (;;) {
      const auto runs = (*reader)->runs(after, kRunsOfALook);
      for (const auto& run : runs) {
        out[run.uid].job = run.job;
        out[run.uid].issues = static_cast<std::int64_t>(run.issues);
      }
      if (runs.size() < kRunsOfALook) break;
      after = {runs.back().heard, runs.back().uid};
    }
    if (auto status = (*reader)->failure(); !status) return status.error();
  }
  if (fs::exists(paths.curves, unknown)) {
    const auto rows = insights::rows_of_runs(paths.curves);
    if (!rows) return rows.error();
    for (const auto& [uid, count] : *rows) out[uid].rows = count;
  }
  return out;
}

// What of the old ones the new ones lack, a line each.
std::vector<std::string> lost_lines(const RunsHeld& before, const RunsHeld& now) {
  std::vector<std::string> out;
  for (const auto& [uid, old] : before) {
    const std::string called = uid + (old.job.empty() ? "" : " (" + old.job + ")");
    const auto found = now.find(uid);
    if (found == now.end()) {
      out.push_back(called + ": the whole run");
      continue;
    }
    const auto tell = [&](std::int64_t now_held, std::int64_t held, const char* what) {
      if (now_held < held)
        out.push_back(called + ": " + std::to_string(held - now_held) + " of " +
                      std::to_string(held) + what);
    };
    tell(found->second.issues, old.issues, " issues");
    tell(found->second.rows, old.rows, " rows of its curves");
  }
  return out;
}

void print_lost(const std::vector<std::string>& lost) {
  for (std::size_t at = 0; at < lost.size() && at < kMostListed; ++at)
    std::cerr << "  " << lost[at] << "\n";
  if (lost.size() > kMostListed) std::cerr << "  and " << lost.size() - kMostListed << " more\n";
}

// The write-ahead log of the old file belongs to no other one.
core::Status put_in_place(const std::string& made, const std::string& path) {
  std::error_code failed;
  if (fs::exists(made + "-wal", failed) && fs::file_size(made + "-wal", failed) > 0)
    return core::unavailable(made + ": it was not closed");
  fs::remove(path + "-wal", failed);
  fs::remove(path + "-shm", failed);
  fs::rename(made, path, failed);
  if (failed) return core::unavailable(path + ": cannot be replaced: " + failed.message());
  return core::ok();
}

// One line, which a terminal writes over.
void tell_progress(const StorePaths& made) {
  insights::StoreSize events;
  insights::SeriesSize curves;
  if (const auto reader = insights::EventReader::open(made.events)) events = (*reader)->size();
  if (const auto reader = insights::SeriesReader::open(made.curves)) curves = (*reader)->size();
  std::cerr << "\rrebuilding: " << events.runs << " runs, " << events.events << " events, "
            << curves.values << " rows of curves, " << bytes_text(events.bytes + curves.bytes)
            << "    " << std::flush;
}

int finish(const InsightsOptions& options, std::size_t lost) {
  if (options.json) {
    std::cout << core::to_json(
                     core::ValueMap{{"rebuilt", true}, {"lost", static_cast<std::int64_t>(lost)}})
              << "\n";
  } else {
    std::cout << "rebuilt; the new stores are in place\n";
  }
  return kOk;
}

int rebuild(const InsightsOptions& options, const AppConfig& config, const StorePaths& old,
            const fs::path& folder) {
  const StorePaths made{folder / "insights.db", folder / "curves.db", std::nullopt};
  auto before = runs_held(old);
  if (!before && !options.drop_lost) {
    std::cerr << "tocsin: " << before.error().message
              << "\nWhich runs a rebuild would lose cannot be told. Nothing was changed. Rebuild "
                 "anyway with --drop-lost.\n";
    return kFailed;
  }
  const auto filled = refill_stores(config, made.events, [&] { tell_progress(made); });
  if (filled) tell_progress(made);
  std::cerr << "\n";
  if (!filled) return refuse(filled.error());
  const auto now = runs_held(made);
  if (!now) return refuse(now.error());
  const auto lost = before ? lost_lines(*before, *now) : std::vector<std::string>();
  if (!lost.empty()) {
    std::cerr << "The topics have dropped what the old stores still have:\n";
    print_lost(lost);
    if (!options.drop_lost) {
      std::cerr << "Nothing was changed. Give this up with --drop-lost.\n";
      return kFailed;
    }
  }
  for (const auto& [from, to] : {std::pair{made.events, old.events}, {made.curves, old.curves}}) {
    if (auto status = put_in_place(from, to); !status) return refuse(status.error());
  }
  return finish(options, lost.size());
}

}  // namespace

int insights_rebuild(const InsightsOptions& options) {
  const auto config = insights_configuration(options);
  if (!config) return kConfiguration;
  const StorePaths old = store_paths(*config);
  const fs::path beside = fs::path(old.events).parent_path();
  std::error_code failed;
  if (!beside.empty()) fs::create_directories(beside, failed);
  // Both for as long as this takes: a server that began meanwhile would write into what is replaced.
  auto events = insights::StoreLock::take(old.events);
  if (!events) return refuse(events.error());
  auto curves = insights::StoreLock::take(old.curves);
  if (!curves) return refuse(curves.error());
  const fs::path folder = beside / "insights.rebuild";
  fs::remove_all(folder, failed);
  const int code = rebuild(options, *config, old, folder);
  fs::remove_all(folder, failed);
  return code;
}

}  // namespace tocsin::app
