#include "collectors/hook/commands/command_message.h"

#include "core/topics.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

namespace tocsin::hook {
namespace {

// u32 bytes after this field, u8 kind; then for a record: i64 timestamp, u8 has a value, texts.
constexpr std::size_t kHead = 5;
constexpr std::size_t kMaxMessage = 2U << 20;
constexpr char kAlive = 0;
constexpr char kRecord = 1;

constexpr std::array<std::string_view, 11> kHeaders = {
    "content-type",   "ce_specversion",   "ce_type",       "ce_source",
    "ce_id",          "ce_subject",       "ce_time",       "ce_sequence",
    "ce_causationid", "ce_correlationid", "ce_traceparent"};

template <typename T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}
void put_text(std::string& out, std::string_view text) {
  put(out, static_cast<std::uint32_t>(text.size()));
  out += text;
}

class In {
 public:
  explicit In(std::string_view bytes) : left_(bytes) {}
  template <typename T>
  T number() {
    T out{};
    if (const std::string_view bytes = take(sizeof out); bytes.size() == sizeof out) {
      std::memcpy(&out, bytes.data(), sizeof out);
    }
    return out;
  }
  std::string_view text() { return take(number<std::uint32_t>()); }
  [[nodiscard]] bool good() const noexcept { return good_; }
  [[nodiscard]] bool empty() const noexcept { return left_.empty(); }

 private:
  std::string_view take(std::size_t size) {
    if (size > left_.size()) {
      good_ = false;
      left_ = {};
      return {};
    }
    const std::string_view out = left_.substr(0, size);
    left_.remove_prefix(size);
    return out;
  }
  std::string_view left_;
  bool good_ = true;
};

using Headers = std::vector<std::pair<std::string_view, std::string_view>>;

std::optional<std::string_view> find_header(const void* native, std::string_view name) {
  for (const auto& [key, value] : *static_cast<const Headers*>(native)) {
    if (key == name) return value;
  }
  return std::nullopt;
}

std::string finished(std::string message) {
  const auto size = static_cast<std::uint32_t>(message.size() - sizeof(std::uint32_t));
  std::memcpy(message.data(), &size, sizeof size);
  return message;
}

}  // namespace

std::string keep_alive_message() { return finished(std::string(4, '\0') + kAlive); }

std::string encode_command_message(const core::RecordView& record) {
  std::string out(4, '\0');
  out += kRecord;
  put(out, record.timestamp);
  put(out, static_cast<std::uint8_t>(!record.tombstone));
  put_text(out, record.key.value_or(std::string_view{}));
  put_text(out, record.tombstone ? std::string_view{} : record.text());
  for (const std::string_view name : kHeaders) {
    const auto value = record.header(name);
    if (!value) continue;
    put_text(out, name);
    put_text(out, *value);
  }
  return finished(std::move(out));
}

std::optional<std::size_t> message_size(std::string_view bytes) {
  if (bytes.size() < sizeof(std::uint32_t)) return 0;
  std::uint32_t size = 0;
  std::memcpy(&size, bytes.data(), sizeof size);
  if (size < 1 || size > kMaxMessage) return std::nullopt;
  return sizeof size + size;
}

bool decode_command_message(std::string_view message,
                            const std::function<void(const core::RecordView&)>& take) {
  if (message.size() < kHead) return false;
  if (message[kHead - 1] != kRecord) return true;
  In in(message.substr(kHead));
  core::RecordView record;
  record.topic = core::topic::kCommands;
  record.timestamp = in.number<std::int64_t>();
  record.tombstone = in.number<std::uint8_t>() == 0;
  record.key = in.text();
  const std::string_view value = in.text();
  record.value = std::as_bytes(std::span(value.data(), value.size()));
  Headers headers;
  while (in.good() && !in.empty()) {
    const std::string_view name = in.text();
    headers.emplace_back(name, in.text());
  }
  if (!in.good()) return false;
  record.native = &headers;
  record.find_header = find_header;
  take(record);
  return true;
}

}  // namespace tocsin::hook
