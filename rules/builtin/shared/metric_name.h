// What the name of a series says: read as words (split at / _ - . : and blanks, in lower case), never
// as parts of words. `retrieval_loss` names no data set.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/identity.h"
#include "rules/contract/rule.h"

namespace tocsin::rules {

struct MetricName {
  std::uint64_t metric = 0;  // of the words that are left without those of the data set
  std::uint64_t set = 0;     // of the words of the data set, a number behind it included; 0: none
  bool train_word = false;   // the data set is a training set's
  std::int32_t validation = -1;  // n of `validation_<n>`, as scikit-learn's wrapper names its sets
  bool grows = false;            // by its metric: auc, ndcg, accuracy, …
  bool counts_samples = false;   // error, merror: whole samples, too coarse for a curve
};

namespace words {

inline constexpr std::size_t kMost = 32;

inline bool separates(char c) {
  return c == '/' || c == '_' || c == '-' || c == '.' || c == ':' || c == ' ';
}

/// A name in lower case, cut into words; words and letters beyond the buffers are left out.
struct Words {
  std::array<char, 256> text{};
  std::array<std::string_view, kMost> word{};
  std::size_t count = 0;

  explicit Words(std::string_view name) {
    const std::size_t length = std::min(name.size(), text.size());
    for (std::size_t i = 0; i < length; ++i) {
      const char c = name[i];
      text[i] = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    }
    for (std::size_t at = 0; at < length && count < kMost;) {
      std::size_t end = at;
      while (end < length && !separates(text[end])) ++end;
      if (end > at) word[count++] = {text.data() + at, end - at};
      at = end + 1;
    }
  }
  Words(const Words&) = delete;
  Words& operator=(const Words&) = delete;
};

inline bool is_any(std::string_view word, std::initializer_list<std::string_view> of) {
  return std::find(of.begin(), of.end(), word) != of.end();
}
inline bool trains(std::string_view word) { return is_any(word, {"train", "training"}); }
inline bool names_set(std::string_view word) {
  return trains(word) || is_any(word, {"val", "valid", "validation", "eval", "evaluation", "test"});
}
inline bool is_number(std::string_view word) {
  return !word.empty() && word.size() <= 9 &&
         std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// Hash of words from…to, leaving out those of the gap.
inline std::uint64_t hash(const Words& all, std::size_t from, std::size_t to,
                          std::size_t gap_from = kMost, std::size_t gap_to = kMost) {
  std::array<char, 320> joined{};
  std::size_t length = 0;
  for (std::size_t i = from; i < to; ++i) {
    if (i >= gap_from && i < gap_to) continue;
    const std::string_view word = all.word[i].substr(0, joined.size() - length);
    std::copy(word.begin(), word.end(), joined.begin() + static_cast<std::ptrdiff_t>(length));
    length += word.size();
    if (length < joined.size()) joined[length++] = ' ';
  }
  return core::name_hash({joined.data(), length});
}

}  // namespace words

inline MetricName metric_name(std::string_view name) {
  // `ndcg@3-` is ndcg: what stands behind the sign says how it is measured. Within the metric it
  // still counts: ndcg@3 and ndcg@5 are two series.
  const words::Words all(name);
  MetricName out;
  std::size_t first = all.count;
  std::size_t last = all.count;
  for (std::size_t i = 0; i < all.count && first == all.count; ++i) {
    if (!words::names_set(all.word[i])) continue;
    first = i;
    const bool numbered = i + 1 < all.count && words::is_number(all.word[i + 1]);
    last = i + (numbered ? 2 : 1);
    out.train_word = words::trains(all.word[i]);
    out.set = words::hash(all, first, last);
    if (numbered && all.word[i] == "validation") {
      out.validation = 0;
      for (const char c : all.word[i + 1]) out.validation = out.validation * 10 + (c - '0');
    }
  }
  out.metric = words::hash(all, 0, all.count, first, last);
  const std::size_t sign = name.find('@');
  const words::Words plain(name.substr(0, sign));
  std::string_view measured;
  std::size_t measures = 0;
  bool averaged = false;
  for (std::size_t i = 0; i < plain.count; ++i) {
    if (i >= first && i < last) continue;
    measured = plain.word[i];
    // `average_precision`, `balanced_accuracy`: how it is averaged changes nothing.
    const bool how =
        words::is_any(measured, {"average", "balanced", "macro", "mean", "micro", "weighted"});
    measures += how ? 0 : 1;
    averaged = averaged || how;
  }
  if (measures != 1) return out;
  out.grows = words::is_any(measured, {"auc", "aucpr", "map", "ndcg", "pre", "acc", "accuracy",
                                       "f1", "precision", "recall"});
  out.counts_samples = !averaged && words::is_any(measured, {"error", "merror"});
  return out;
}

/// Whether the series is one side of learning by reward, where losses of a policy and of values stand side by
/// side and none is the other's adversary: `actor_loss`, `policy_loss`, `value_loss`, `q_loss`.
inline bool is_of_policy(std::string_view name) {
  const words::Words all(name);
  for (std::size_t i = 0; i < all.count; ++i) {
    if (words::is_any(all.word[i],
                      {"actor", "policy", "pi", "value", "qf", "q", "q1", "q2", "vf"})) {
      return true;
    }
  }
  return false;
}

/// Whether the series says how well the task is done, by its name: `reward`, `episode_return`, `top5_accuracy`,
/// `success_rate`. Not what says how far such values lie apart.
inline bool is_success(std::string_view name) {
  const words::Words all(name);
  bool found = false;
  for (std::size_t i = 0; i < all.count; ++i) {
    const std::string_view word = all.word[i];
    if (words::is_any(word, {"loss", "error", "std", "var", "variance", "entropy", "norm"})) {
      return false;
    }
    found = found || words::is_any(word, {"reward", "rewards", "return", "returns", "rew", "score",
                                          "success", "acc", "accuracy", "auc", "f1", "map", "aucpr",
                                          "ndcg", "precision", "recall"});
  }
  return found;
}

/// Whether the series should grow: as its producer states it, else by its name.
inline bool should_grow(const SeriesValue& value, const MetricName& name) {
  return value.direction ? *value.direction == core::Direction::max : name.grows;
}

/// The parameter `train_set` of rules that compare data sets.
inline void read_train_set(config::Reader& in, std::string& train_set) {
  in.optional("train_set", train_set,
              "name of the training set in metric names (validation_0); empty = train, or the "
              "lowest of several validation_<n>");
}

/// One series of a step, with what its name comes to beside the others of the step.
struct ReadSeries {
  const SeriesValue* value = nullptr;
  MetricName name;
  bool trains = false;  // of the training set, or of no stated set in a mode that trains
  bool grows = false;
};

/// Boosting libraries write `<set>-<metric>`, and a set may have any name: beside `training-huber` a series
/// `held-huber` is the same metric of another set. Nothing is told from names without the sign: `kl_loss` beside
/// `train_loss` is no set.
inline void name_other_sets(std::vector<ReadSeries>& all) {
  for (const ReadSeries& trained : all) {
    const std::string_view text = trained.value->text;
    const std::size_t sign = text.find('-');
    if (!trained.name.train_word || sign == std::string_view::npos) continue;
    const words::Words set(text.substr(0, sign));
    if (set.count != 1 || !words::trains(set.word[0])) continue;
    for (ReadSeries& one : all) {
      const std::string_view other = one.value->text;
      if (one.name.set != 0 || !other.ends_with(text.substr(sign))) continue;
      one.name.set = core::name_hash(other.substr(0, other.size() - (text.size() - sign)));
      one.name.metric = trained.name.metric;
      one.name.grows = trained.name.grows;
      one.name.counts_samples = trained.name.counts_samples;
      one.grows = should_grow(*one.value, one.name);
      one.trains = false;
    }
  }
}

/// Reads all names of a point. Which set is trained on: `train_set` if given; else what is called
/// train; else, where a step has several sets `validation_<n>` of a metric and none is called train,
/// the lowest n, since `eval_set` of XGBoost's scikit-learn wrapper has the training data first.
inline std::vector<ReadSeries> read_series(const StepPoint& point, std::string_view train_set) {
  std::vector<ReadSeries> out;
  out.reserve(point.values.size());
  const words::Words given(train_set);
  const std::uint64_t wanted = given.count == 0 ? 0 : words::hash(given, 0, given.count);
  const bool evaluates = point.mode == core::Mode::eval;
  for (const SeriesValue& value : point.values) {
    ReadSeries one{&value, metric_name(value.text), false, false};
    one.grows = should_grow(value, one.name);
    one.trains = one.name.set == 0 ? !evaluates
                 : wanted != 0     ? one.name.set == wanted
                                   : one.name.train_word;
    out.push_back(one);
  }
  if (wanted != 0) return out;
  name_other_sets(out);
  for (ReadSeries& one : out) {
    if (one.name.validation < 0) continue;
    bool lowest = true;
    bool several = false;
    for (const ReadSeries& other : out) {
      if (other.name.metric != one.name.metric || &other == &one) continue;
      if (other.trains) lowest = false;
      if (other.name.validation < 0) continue;
      several = true;
      lowest = lowest && other.name.validation > one.name.validation;
    }
    one.trains = several && lowest;
  }
  return out;
}

}  // namespace tocsin::rules
