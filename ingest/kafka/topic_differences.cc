#include "ingest/kafka/topic_differences.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "core/text.h"
#include "core/time.h"

namespace tocsin::ingest {
namespace {

using core::TopicDifference;
using Grade = TopicDifference::Grade;

constexpr std::int64_t kForever = -1;  // of retention.ms and retention.bytes

std::optional<std::int64_t> number(const std::string& text) {
  std::int64_t out = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (failure != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return out;
}

std::string in_words(std::int64_t ms) { return core::to_text(std::chrono::milliseconds(ms)); }

class Comparison {
 public:
  Comparison(const TopicSpec& wanted, const TopicFound& found) : wanted_(wanted), found_(found) {}

  std::vector<TopicDifference> take() {
    partitions();
    replication();
    cleanup();
    age();
    volume();
    message_size();
    in_sync();
    timestamps();
    for (const char* key : {"min.cleanable.dirty.ratio", "segment.bytes"}) {
      plain(key, "compaction is later: the topic is larger, and a restart reads more");
    }
    plain("compression.type", "brokers compress again what producers have compressed");
    tombstones();
    std::stable_sort(out_.begin(), out_.end(),
                     [](const auto& a, const auto& b) { return a.grade > b.grade; });
    return std::move(out_);
  }

 private:
  [[nodiscard]] std::string want(const std::string& key) const {
    for (const auto& [name, value] : wanted_.settings) {
      if (name == key) return value;
    }
    return {};
  }
  [[nodiscard]] const std::string* have(const std::string& key) const {
    const auto at = found_.settings.find(key);
    return at == found_.settings.end() ? nullptr : &at->second;
  }
  [[nodiscard]] bool found_policy(std::string_view word) const {
    const std::string* policy = have("cleanup.policy");
    return policy != nullptr && policy->find(word) != std::string::npos;
  }
  [[nodiscard]] bool wants_age() const {
    return want("cleanup.policy").find("delete") != std::string::npos;
  }
  // What is read back after a restart, and must not go by itself.
  [[nodiscard]] bool keeps_state() const { return wanted_.compacted && !wants_age(); }

  void add(Grade grade, std::string key, std::string wanted, std::string found, std::string cost,
           bool safe, std::string kept = {}) {
    out_.push_back({grade, std::move(key), std::move(wanted), std::move(found), std::move(cost),
                    safe, std::move(kept)});
  }

  void partitions() {
    if (found_.partitions == wanted_.partitions) return;
    add(Grade::warning, "partitions", std::to_string(wanted_.partitions),
        std::to_string(found_.partitions), "runs are spread otherwise than topics.partitions says",
        false,
        "runs would move to other partitions and leave their state behind; set topics.partitions, "
        "or "
        "begin with another topics.prefix");
  }

  void replication() {
    if (found_.replication == 0 || found_.replication == wanted_.replication) return;
    const bool fewer = found_.replication < wanted_.replication;
    add(fewer ? Grade::warning : Grade::note, "replication", std::to_string(wanted_.replication),
        std::to_string(found_.replication),
        fewer ? "so many copies only: what is acknowledged can be lost with their brokers"
              : "more copies than topics.replication says",
        false, "replicas are moved by kafka-reassign-partitions.sh");
  }

  void cleanup() {
    const std::string wanted = want("cleanup.policy");
    const std::string* found = have("cleanup.policy");
    if (found == nullptr ||
        (found_policy("compact") == wanted_.compacted && found_policy("delete") == wants_age())) {
      return;
    }
    if (wanted_.compacted && !found_policy("compact")) {
      add(keeps_state() ? Grade::danger : Grade::warning, "cleanup.policy", wanted, *found,
          keeps_state() ? "state that has not changed for " + kept_for() +
                              " is deleted: after a restart it is not there"
                        : "older records of a key stay: each start reads all of them",
          true);
    } else if (!wanted_.compacted && found_policy("compact")) {
      add(Grade::danger, "cleanup.policy", wanted, *found,
          "of the records of one run only the newest stays: the others are lost unread", true);
    } else if (keeps_state()) {
      add(Grade::danger, "cleanup.policy", wanted, *found,
          "state that has not changed for " + kept_for() +
              " is deleted: after a restart it is not there",
          true);
    } else {
      add(Grade::warning, "cleanup.policy", wanted, *found,
          "nothing is ever deleted: it only grows", false, "records would be deleted at once");
    }
  }

  [[nodiscard]] std::string kept_for() const {
    const std::string* age = have("retention.ms");
    const auto ms = age == nullptr ? std::nullopt : number(*age);
    return ms && *ms >= 0 ? in_words(*ms) : "its retention time";
  }

  void age() {
    const std::string* found = have("retention.ms");
    if (found == nullptr || !found_policy("delete") || !wants_age()) return;
    const std::string wanted = want("retention.ms");
    const auto is = number(*found);
    const auto should = number(wanted);
    if (!is || !should || *is == *should) return;
    const bool longer = *is == kForever || (*should != kForever && *is > *should);
    if (longer) {
      add(Grade::note, "retention.ms", wanted, *found, "kept longer than planned: more disk", false,
          "records would be deleted at once");
      return;
    }
    constexpr std::int64_t kHour = 3'600'000;
    add(*is < kHour ? Grade::danger : Grade::warning, "retention.ms", wanted, *found,
        "who does not read for " + in_words(*is) + " misses records, also during a restart", true);
  }

  void volume() {
    const std::string* found = have("retention.bytes");
    const auto is = found == nullptr ? std::nullopt : number(*found);
    if (!is || *is == kForever || !found_policy("delete")) return;
    add(keeps_state() ? Grade::danger : Grade::warning, "retention.bytes", "-1", *found,
        "a partition beyond this loses its oldest records, however young they are", true);
  }

  void message_size() {
    const std::string* found = have("max.message.bytes");
    const std::string wanted = want("max.message.bytes");
    const auto is = found == nullptr ? std::nullopt : number(*found);
    const auto should = number(wanted);
    if (!is || !should || *is == *should) return;
    if (*is > *should) {
      add(Grade::note, "max.message.bytes", wanted, *found, "larger records than ours are taken",
          false, "others may need it");
      return;
    }
    add(Grade::warning, "max.message.bytes", wanted, *found,
        "larger records are refused, and a commit that holds one stands still", true);
  }

  void in_sync() {
    const std::string* found = have("min.insync.replicas");
    const auto is = found == nullptr ? std::nullopt : number(*found);
    if (!is) return;
    if (found_.replication > 0 && *is > found_.replication) {
      add(Grade::danger, "min.insync.replicas", std::to_string(found_.replication), *found,
          "more than there are replicas: nothing can be written", false,
          "it may be meant for replicas that are still to come");
      return;
    }
    const auto should = number(want("min.insync.replicas"));
    if (!should || *is >= *should) return;
    const bool enough = found_.replication == 0 || found_.replication > *should;
    add(Grade::warning, "min.insync.replicas", std::to_string(*should), *found,
        "a record counts as written with one copy: it can be lost with one broker", enough,
        enough ? "" : "with so few replicas one broker's absence would stop all writing");
  }

  void timestamps() {
    const std::string* found = have("message.timestamp.type");
    if (found == nullptr || *found == want("message.timestamp.type")) return;
    add(Grade::warning, "message.timestamp.type", want("message.timestamp.type"), *found,
        "times of records are the broker's, not those of the measurement", true);
  }

  void tombstones() {
    const std::string key = "delete.retention.ms";
    const std::string* found = have(key);
    const auto is = found == nullptr ? std::nullopt : number(*found);
    const auto should = number(want(key));
    if (!is || !should || *is == *should) return;
    add(*is < *should ? Grade::warning : Grade::note, key, want(key), *found,
        *is < *should
            ? "who reads for longer than " + in_words(*is) + " misses that a key was deleted"
            : "deleted keys stay visible for longer",
        true);
  }

  void plain(const std::string& key, const char* cost) {
    const std::string wanted = want(key);
    const std::string* found = have(key);
    if (wanted.empty() || found == nullptr || *found == wanted) return;
    add(Grade::note, key, wanted, *found, cost, true);
  }

  const TopicSpec& wanted_;
  const TopicFound& found_;
  std::vector<TopicDifference> out_;
};

}  // namespace

std::vector<core::TopicDifference> find_differences(const TopicSpec& wanted,
                                                    const TopicFound& found) {
  return Comparison(wanted, found).take();
}

}  // namespace tocsin::ingest
