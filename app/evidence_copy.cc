#include "app/evidence_copy.h"

#include <cctype>
#include <filesystem>
#include <fstream>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "app/replay/recording.h"
#include "app/replay/records_of_run.h"
#include "app/replay/slice.h"
#include "core/labels.h"
#include "core/topics.h"

namespace tocsin::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kEvent = "issue.json";
constexpr std::size_t kKeyLength = 12;  // of an issue's key: few issues of one run

std::string run_directory(const std::string& dir, const core::Issue& issue) {
  return fs::path(dir) / (core::to_text(issue.run.uid) + "-" + std::to_string(issue.run.attempt));
}

// A rule's name is its author's.
std::string file_name(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
    out += plain ? c : '_';
  }
  return out.substr(0, 80);
}

/// Which records are the run's, and how large they are, before one is written.
struct Extent {
  std::vector<std::pair<std::int64_t, std::uint64_t>> records;  // offset, bytes
  std::uint64_t bytes = 0;
};

Span span_of(const core::Issue& issue, core::Duration lead) {
  const core::DataRef& where = issue.evidence.data_refs.front();
  Span out;
  out.partition = where.partition;
  out.to.offset = where.last + 1;
  const core::WallTime first = core::nanoseconds(issue.evidence.window.first_time) != 0
                                   ? issue.evidence.window.first_time
                                   : issue.time;
  if (core::nanoseconds(first) != 0) out.from.time = first - lead;
  return out;
}

core::Result<Extent> measure(ingest::Transport& transport, const core::Issue& issue,
                             const Span& span) {
  Extent out;
  RecordsOfRun of_run(issue.run.uid);
  const auto take = [&](const core::RecordView& record) {
    if (!of_run(record)) return;
    out.records.emplace_back(record.offset, record.value.size());
    out.bytes += record.value.size();
  };
  const auto read = read_recording(transport, core::topic::kTelemetry, span, take, [] {});
  if (!read) return read.error();
  if (out.records.empty()) {
    return core::Error{core::Code::not_found,
                       "the records that the issue names are not in the topic any more"};
  }
  return out;
}

core::Status write_event(const fs::path& directory, const core::Issue& issue) {
  std::ofstream out(directory / kEvent);
  out << ingest::issue_json(issue) << "\n";
  out.close();
  if (out) return core::ok();
  return core::Error{core::Code::unavailable, (directory / kEvent).string() + " cannot be written"};
}

/// What is not whole is gone, before and behind.
struct Unfinished {
  explicit Unfinished(fs::path part) : path(std::move(part)) { remove(); }
  ~Unfinished() { remove(); }
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;
  void remove() const {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  fs::path path;
};

core::Error cannot(const fs::path& path, const std::error_code& error) {
  return core::Error{core::Code::unavailable, path.string() + ": " + error.message()};
}

}  // namespace

std::string evidence_directory(const std::string& dir, const core::Issue& issue) {
  return fs::path(run_directory(dir, issue)) /
         (file_name(issue.rule) + "-" + core::issue_key(issue.labels).substr(0, kKeyLength));
}

bool is_kept(const std::string& directory) {
  std::error_code ignored;
  return fs::exists(fs::path(directory) / kEvent, ignored);
}

std::size_t kept_of_run(const std::string& dir, const core::Issue& issue) {
  std::error_code error;
  std::size_t count = 0;
  for (const auto& one : fs::directory_iterator(run_directory(dir, issue), error)) {
    if (is_kept(one.path())) ++count;
  }
  return count;
}

core::Result<EvidenceCopy> copy_evidence(ingest::Transport& transport, const core::Issue& issue,
                                         const EvidenceConfig& config) {
  if (issue.evidence.data_refs.empty()) {
    return core::Error{core::Code::not_found, "the issue names no records"};
  }
  const fs::path directory = evidence_directory(config.dir, issue);
  const fs::path part = directory.parent_path() / ("." + directory.filename().string() + ".part");
  Span span = span_of(issue, config.lead);
  auto extent = measure(transport, issue, span);
  if (!extent) return extent.error();
  EvidenceCopy out;
  while (extent->bytes > config.most.count && out.left_out + 1 < extent->records.size()) {
    extent->bytes -= extent->records[out.left_out].second;
    ++out.left_out;
  }
  const std::int64_t first = extent->records[out.left_out].first;
  const Unfinished removed{part};  // also what a process left that died over it
  auto slice = Slice::create(part);
  if (!slice) return slice.error();
  RecordsOfRun of_run(issue.run.uid);
  const auto add = [&](const core::RecordView& record) {
    if (record.offset >= first && of_run(record)) (*slice)->add(record);
  };
  const auto read = read_recording(transport, core::topic::kTelemetry, span, add, [] {});
  if (!read) return read.error();
  if (const auto closed = (*slice)->close(); !closed) return closed.error();
  if (const auto written = write_event(part, issue); !written) return written.error();
  std::error_code error;
  fs::rename(part, directory, error);
  if (error) return cannot(directory, error);
  out.records = (*slice)->records();
  out.bytes = (*slice)->bytes();
  return out;
}

std::size_t remove_old_evidence(const std::string& dir, core::WallTime before, core::Log& log) {
  std::vector<fs::path> old;
  std::error_code error;
  for (const auto& run : fs::directory_iterator(dir, error)) {
    std::error_code skipped;
    for (const auto& one : fs::directory_iterator(run.path(), skipped)) {
      const auto made = fs::last_write_time(one.path() / kEvent, skipped);
      if (skipped) continue;
      const auto at = fs::file_time_type::clock::to_sys(made);
      if (at.time_since_epoch() < core::Duration(core::nanoseconds(before))) {
        old.push_back(one.path());
      }
    }
  }
  std::size_t removed = 0;
  for (const fs::path& one : old) {
    fs::remove_all(one, error);
    if (error) {
      log.warn("evidence_not_removed", {{"path", one.string()}, {"error", error.message()}});
      continue;
    }
    ++removed;
    fs::remove(one.parent_path(), error);  // of the run; not while something is in it
  }
  return removed;
}

}  // namespace tocsin::app
