#include "app/recordings/evidence_copy.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <system_error>
#include <utility>
#include <vector>

#include "app/recordings/recording.h"
#include "app/recordings/records_of_run.h"
#include "app/recordings/slice.h"
#include "core/labels.h"
#include "core/topics.h"

namespace tocsin::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kEvent = "issue.json";
constexpr const char* kPart = ".part";
constexpr const char* kEventPart = "issue.json.part";  // while the records are not whole
constexpr std::size_t kKeyLength = 12;                 // of an issue's key: few issues of one run

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

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

/// A journal smaller than this has no room for one large record.
constexpr std::uint64_t kLeast = 1U << 20;

class Copying final : public EvidenceCopying {
 public:
  Copying(fs::path directory, fs::path part)
      : directory_(std::move(directory)), part_(std::move(part)) {}

  core::Status begin(ingest::Transport& transport, const core::Issue& issue,
                     const EvidenceConfig& config);
  core::Result<std::optional<EvidenceCopy>> go_on() override;

 private:
  core::Result<bool> read();
  core::Result<EvidenceCopy> finish();
  void remove();
  [[nodiscard]] fs::path event() const { return part_ / kEventPart; }

  const fs::path directory_;
  const fs::path part_;
  std::optional<RecordsOfRun> of_run_;
  std::unique_ptr<Slice> slice_;
  std::unique_ptr<RecordingReader> reader_;
};

bool unfinished(const fs::path& path) {
  const std::string name = path.filename();
  return name.starts_with('.') && name.ends_with(kPart);
}

bool older(fs::file_time_type time, core::WallTime before) {
  const auto at = fs::file_time_type::clock::to_sys(time);
  return at.time_since_epoch() < core::Duration(core::nanoseconds(before));
}

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
    if (!unfinished(one.path()) && is_kept(one.path())) ++count;
  }
  return count;
}

// What is there of another report of the issue, or is damaged, is begun anew.
core::Status Copying::begin(ingest::Transport& transport, const core::Issue& issue,
                            const EvidenceConfig& config) {
  const std::string told = ingest::issue_json(issue) + "\n";
  const std::uint64_t most = std::max(config.most.count, kLeast);
  std::error_code ignored;
  if (fs::exists(part_, ignored) && text_of(event()) != told) remove();
  auto slice = Slice::go_on(part_, most);
  if (!slice) {
    remove();
    slice = Slice::go_on(part_, most);
  }
  if (!slice) return slice.error();
  slice_ = std::move(*slice);
  std::ofstream out(event());
  out << told;
  out.close();
  if (!out) return core::Error{core::Code::unavailable, event().string() + " cannot be written"};
  Span span = span_of(issue, config.lead);
  if (slice_->mark()) span.from.offset = slice_->mark()->next;
  auto reader = RecordingReader::open(transport, core::topic::kTelemetry, span);
  if (!reader) return reader.error();
  reader_ = std::move(*reader);
  of_run_.emplace(issue.run.uid);
  return core::ok();
}

core::Result<bool> Copying::read() {
  return reader_->read([&](const core::RecordView& record) {
    if ((*of_run_)(record)) slice_->add(record);
  });
}

core::Result<EvidenceCopy> Copying::finish() {
  if (const auto closed = slice_->close(); !closed) return closed.error();
  if (!slice_->mark()) {
    return core::Error{core::Code::not_found,
                       "the records that the issue names are not in the topic any more"};
  }
  if (const auto counted = slice_->count(); !counted) return counted.error();
  EvidenceCopy out{slice_->records(), slice_->bytes(), 0};
  out.left_out = slice_->mark()->seen - out.records;
  std::error_code error;
  fs::rename(event(), part_ / kEvent, error);
  if (!error) fs::rename(part_, directory_, error);
  // Another process was first: nothing is missing.
  if (error && is_kept(directory_))
    remove();
  else if (error)
    return cannot(directory_, error);
  return out;
}

core::Result<std::optional<EvidenceCopy>> Copying::go_on() {
  const auto done = read();
  if (done && !*done && slice_->status()) return std::optional<EvidenceCopy>();
  core::Result<EvidenceCopy> out =
      done ? finish() : core::Result<EvidenceCopy>(core::Error(done.error()));
  if (out) return std::optional<EvidenceCopy>(*out);
  remove();
  return out.error();
}

void Copying::remove() {
  reader_.reset();
  slice_.reset();
  std::error_code ignored;
  fs::remove_all(part_, ignored);
}

core::Result<std::unique_ptr<EvidenceCopying>> copy_evidence(ingest::Transport& transport,
                                                             const core::Issue& issue,
                                                             const EvidenceConfig& config,
                                                             const std::string& instance) {
  if (issue.evidence.data_refs.empty()) {
    return core::Error{core::Code::not_found, "the issue names no records"};
  }
  const fs::path directory = evidence_directory(config.dir, issue);
  const std::string name = "." + directory.filename().string() + "." + instance + kPart;
  auto out = std::make_unique<Copying>(directory, directory.parent_path() / name);
  if (const auto begun = out->begin(transport, issue, config); !begun) return begun.error();
  return std::unique_ptr<EvidenceCopying>(std::move(out));
}

std::size_t remove_old_evidence(const std::string& dir, core::WallTime before, core::Log& log) {
  std::vector<fs::path> old;
  std::error_code error;
  for (const auto& run : fs::directory_iterator(dir, error)) {
    std::error_code skipped;
    for (const auto& one : fs::directory_iterator(run.path(), skipped)) {
      if (unfinished(one.path())) continue;
      const auto made = fs::last_write_time(one.path() / kEvent, skipped);
      if (skipped) continue;
      if (older(made, before)) old.push_back(one.path());
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

void remove_unfinished_evidence(const std::string& dir, core::WallTime before, core::Log& log) {
  std::error_code error;
  std::vector<fs::path> left;
  for (const auto& run : fs::directory_iterator(dir, error)) {
    std::error_code skipped;
    for (const auto& one : fs::directory_iterator(run.path(), skipped)) {
      if (!unfinished(one.path())) continue;
      const auto written = fs::last_write_time(one.path() / kEventPart, skipped);
      if (!skipped && older(written, before)) left.push_back(one.path());
    }
  }
  for (const fs::path& one : left) {
    fs::remove_all(one, error);
    log.info("evidence_unfinished_removed", {{"path", one.string()}});
  }
}

}  // namespace tocsin::app
