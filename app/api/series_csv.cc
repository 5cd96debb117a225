#include "app/api/series_csv.h"

#include <charconv>
#include <chrono>
#include <cmath>
#include <utility>
#include <vector>

#include "app/serve/problem.h"
#include "core/time.h"

namespace tocsin::app {
namespace {

constexpr const char* kCsvHead = "name,worker,rank,mode,attempt,superseded,step,time,";
constexpr std::size_t kCsvPiece = 64 * 1024;  // as much is sent at once, and a slice
constexpr auto kNeverIdle = std::chrono::hours(1);

void append_csv_number(std::string& out, double value) {
  if (std::isnan(value)) {
    out += "NaN";
  } else if (std::isinf(value)) {
    out += value > 0 ? "Infinity" : "-Infinity";
  } else {
    char digits[32];
    out.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
  }
}

void append_csv_integer(std::string& out, std::int64_t value) {
  char digits[24];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

void append_csv_time(std::string& out, double micros) {
  out += core::to_rfc3339(core::WallTime(std::chrono::duration_cast<core::WallTime::duration>(
      std::chrono::microseconds(static_cast<std::int64_t>(micros)))));
}

// The fields in front of the step; of workers together there is no one worker.
std::string fields_of(const insights::NameLine& name, const insights::FamilyLine& of,
                      bool superseded, bool together) {
  std::string out;
  append_csv_text(out, name.text);
  out += ',';
  if (!together) append_csv_text(out, of.worker);
  out += ',';
  if (!together) append_csv_integer(out, of.rank);
  out += ',';
  out += core::to_string(of.mode);
  out += ',';
  append_csv_integer(out, of.attempt);
  out += superseded ? ",true," : ",false,";
  return out;
}

HttpHeaders download_of(const std::string& file) {
  return {{"Content-Disposition", "attachment; filename=\"" + file + "\""}};
}

class CsvStream final : public HttpStream {
 public:
  CsvStream(insights::RowWalk walk, std::shared_ptr<std::atomic<int>> open)
      : walk_(std::move(walk)), open_(std::move(open)) {}
  CsvStream(const CsvStream&) = delete;
  CsvStream& operator=(const CsvStream&) = delete;
  ~CsvStream() override { open_->fetch_sub(1); }

  void attach(std::function<void()> /*wake*/) override {}
  void detach() override {}
  Piece take() override;
  [[nodiscard]] bool may_wait() const override { return true; }
  [[nodiscard]] std::string idle() const override { return {}; }
  [[nodiscard]] std::chrono::milliseconds idle_after() const override { return kNeverIdle; }

 private:
  insights::RowWalk walk_;
  std::shared_ptr<std::atomic<int>> open_;
  std::vector<insights::WalkedRow> rows_;
  bool begun_ = false;
};

HttpStream::Piece CsvStream::take() {
  Piece out;
  if (!std::exchange(begun_, true)) out.text = std::string(kCsvHead) + "value\r\n";
  while (out.text.size() < kCsvPiece && !out.last) {
    const auto series = walk_.next(rows_);
    if (!series) {
      out.torn = true;
      return out;
    }
    if (*series == nullptr) {
      out.last = true;
      break;
    }
    const insights::Stretch& part = (*series)->part;
    const std::string fields = fields_of((*series)->name, part.family, part.superseded, false);
    for (const insights::WalkedRow& row : rows_) {
      out.text += fields;
      append_csv_integer(out.text, row.x);
      out.text += ',';
      append_csv_time(out.text, row.time);
      out.text += ',';
      append_csv_number(out.text, row.value);
      out.text += "\r\n";
    }
  }
  walk_.rest();
  return out;
}

void append_bucket(std::string& out, const insights::SeriesPoint& point, bool smooth) {
  const insights::Bucket& value = point.value;
  append_csv_integer(out, value.n);
  for (const double one : {value.min, value.max, value.first, value.last}) {
    out += ',';
    if (value.n > 0) append_csv_number(out, one);
  }
  out += ',';
  if (value.n > 0) append_csv_number(out, value.mean());
  for (const std::uint32_t one : {value.nan, value.posinf, value.neginf}) {
    out += ',';
    append_csv_integer(out, one);
  }
  out += ',';
  if (value.bad() > 0) append_csv_integer(out, value.bad_x);
  if (!smooth) return;
  out += ',';
  if (point.smooth) append_csv_number(out, *point.smooth);
}

}  // namespace

void append_csv_text(std::string& out, const std::string& text) {
  if (text.find_first_of("\",\r\n") == std::string::npos) {
    out += text;
    return;
  }
  out += '"';
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
}

HttpAnswer CsvTables::open(insights::RowWalk walk, const std::string& file) {
  if (open_->fetch_add(1) >= kMost) {
    open_->fetch_sub(1);
    HttpAnswer out = problem(429, "too-many-tables",
                             std::to_string(kMost) + " tables are being sent; try again");
    out.headers.emplace_back("Retry-After", "5");
    return out;
  }
  return {
      200, {}, kCsvType, download_of(file), std::make_shared<CsvStream>(std::move(walk), open_)};
}

HttpAnswer buckets_as_csv(const insights::SeriesAnswer& answer, bool together, bool smooth,
                          const std::string& file) {
  std::string out = kCsvHead;
  out += "width,n,min,max,first,last,mean,nan,posinf,neginf,first_bad_step";
  out += smooth ? ",smooth\r\n" : "\r\n";
  const std::string width = std::to_string(std::int64_t{1} << answer.level);
  for (const insights::SeriesLine& line : answer.lines) {
    const std::string fields = fields_of(line.name, line.of, line.superseded, together);
    for (const insights::SeriesPoint& point : line.points) {
      out += fields;
      append_csv_integer(out, point.x);
      out += ',';
      if (point.time) append_csv_time(out, *point.time);
      out += ',' + width + ',';
      append_bucket(out, point, smooth);
      out += "\r\n";
    }
  }
  return {200, std::move(out), kCsvType, download_of(file)};
}

}  // namespace tocsin::app
