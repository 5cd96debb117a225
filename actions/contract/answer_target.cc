#include "actions/contract/answer_target.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "core/visible_text.h"

namespace tocsin::actions {
namespace {

using Purpose = AnswerTarget::Purpose;

constexpr std::size_t kLongestTarget = 160;
constexpr std::size_t kLongestKey = 64;
constexpr std::array<std::string_view, 4> kPurposeWords{"ack", "silence", "approve", "cancel"};

std::string_view word_of(Purpose purpose) {
  return kPurposeWords[static_cast<std::size_t>(purpose)];
}

bool made_of(std::string_view text, std::string_view characters, std::size_t most) {
  return !text.empty() && text.size() <= most &&
         text.find_first_not_of(characters) == std::string_view::npos;
}

std::optional<std::uint64_t> number_of(std::string_view text) {
  std::uint64_t out = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), out);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  return out;
}

std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> out;
  while (true) {
    const std::size_t end = std::min(text.find('-'), text.size());
    out.push_back(text.substr(0, end));
    if (end == text.size()) return out;
    text.remove_prefix(end + 1);
  }
}

constexpr std::string_view kLowerAndDigits = "abcdefghijklmnopqrstuvwxyz0123456789";
constexpr std::string_view kIdCharacters = "abcdefghijklmnopqrstuvwxyz0123456789_";

std::optional<AnswerTarget> stop_target(const std::vector<std::string_view>& parts,
                                        AnswerTarget out) {
  if (parts.size() != 2 || !parts[1].starts_with("cmd_") ||
      !made_of(parts[1], kIdCharacters, kLongestKey))
    return std::nullopt;
  out.stop = parts[1];
  return out;
}

std::optional<AnswerTarget> incident_target(const std::vector<std::string_view>& parts,
                                            AnswerTarget out) {
  if (parts.size() != 6 || parts[1].size() != AnswerTarget::kGroupDigits ||
      !made_of(parts[1], "0123456789abcdef", AnswerTarget::kGroupDigits) ||
      !made_of(parts[3], kLowerAndDigits, kLongestKey))
    return std::nullopt;
  const auto generation = number_of(parts[2]);
  const auto episode = number_of(parts[4]);
  const auto until = number_of(parts[5]);
  constexpr std::uint64_t kLastSecond = 9'000'000'000;  // the year 2255
  if (!generation || !episode || !until || *until > kLastSecond) return std::nullopt;
  out.group = parts[1];
  out.generation = *generation;
  out.issue_key = parts[3];
  out.episode = *episode;
  if (*until != 0) {
    out.until =
        core::wall_time(0) + std::chrono::seconds(static_cast<std::chrono::seconds::rep>(*until));
  }
  return out;
}

}  // namespace

std::string AnswerTarget::text() const {
  std::string out(word_of(purpose));
  if (!stop.empty()) return out + "-" + stop;
  const auto seconds =
      until ? std::chrono::duration_cast<std::chrono::seconds>(until->time_since_epoch()).count()
            : 0;
  return out + "-" + group + "-" + std::to_string(generation) + "-" + issue_key + "-" +
         std::to_string(episode) + "-" + std::to_string(seconds);
}

std::optional<AnswerTarget> AnswerTarget::parse(std::string_view text) {
  if (text.size() > kLongestTarget) return std::nullopt;
  const auto parts = parts_of(text);
  const auto word = std::find(kPurposeWords.begin(), kPurposeWords.end(), parts.front());
  if (word == kPurposeWords.end()) return std::nullopt;
  AnswerTarget out;
  out.purpose = static_cast<Purpose>(word - kPurposeWords.begin());
  const bool about_a_stop =
      out.purpose == Purpose::approve_stop || out.purpose == Purpose::cancel_stop;
  auto read = about_a_stop ? stop_target(parts, out) : incident_target(parts, out);
  // One text for one target: a signature is of the text.
  if (read && read->text() != text) return std::nullopt;
  return read;
}

std::optional<AnswerTarget> answer_target(const core::Notification& notification, Purpose purpose) {
  const core::Listing listing = core::listing_of(notification);
  if (!notification.firing || listing.issues.empty() ||
      notification.kind == core::NotificationKind::close ||
      notification.group_hash.size() < AnswerTarget::kGroupDigits)
    return std::nullopt;
  AnswerTarget out;
  out.purpose = purpose;
  out.group = notification.group_hash.substr(0, AnswerTarget::kGroupDigits);
  out.generation = notification.generation;
  out.issue_key = listing.issues.front().issue_key;
  out.episode = listing.issues.front().episode;
  // What another group's hash or another key looks like gets no button that could not be read back.
  return AnswerTarget::parse(out.text()) ? std::optional(out) : std::nullopt;
}

std::vector<std::pair<std::string, std::string>> silenced_labels(const core::Issue& issue) {
  std::vector<std::pair<std::string, std::string>> out;
  const auto take = [&](const char* name) {
    const std::string& value = issue.labels.get(name);
    if (!value.empty()) out.emplace_back(name, value);
  };
  take("run_uid");
  if (!out.empty()) return out;
  for (const char* name : {"rule", "job", "node", "instance"}) take(name);
  return out;
}

std::string silenced_words(const core::Issue& issue) {
  constexpr std::size_t kLongestValue = 60;
  const auto labels = silenced_labels(issue);
  if (!labels.empty() && labels.front().first == "run_uid") {
    const std::string& job = issue.labels.get("job");
    return "all of run " + core::visible(labels.front().second, kLongestValue) +
           (job.empty() ? "" : " (" + core::visible(job, kLongestValue) + ")");
  }
  std::string out;
  for (const auto& [name, value] : labels)
    out += (out.empty() ? "" : ", ") + name + " " + core::visible(value, kLongestValue);
  return out;
}

}  // namespace tocsin::actions
