// Rules of the user's own, killed at any point: windows of every kind, folds over workers, joined
// selections and samples go on where the snapshot and the replay have brought them.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>

#include "tests/unit/rules/state_topic.h"

namespace tocsin::rules::declared {
namespace {

using namespace stories;  // NOLINT: the stories are this file's language

constexpr char kOwnRules[] =
    "  - {name: newest, select: 'metric(\"loss\")', when: 'value > 0.8', clear_after: 1}\n"
    "  - {name: sliding, select: 'metric(\"loss\")', window: last 3 steps, when: 'slope(value) > "
    "-1e-5', for: 2}\n"
    "  - {name: hop, select: 'metric(\"loss\")', window: last 4 steps every 2 steps, when: "
    "'max(value) > 0.9', clear_after: 1}\n"
    "  - {name: pieces, select: 'metric(\"loss\")', window: every 3 steps, when: 'mean(value) > "
    "previous(mean(value))', clear_after: 1}\n"
    "  - {name: paused, select: 'metric(\"loss\")', window: session 10ms, when: 'count(value) > "
    "0'}\n"
    "  - {name: since, select: 'metric(\"loss\")', window: since start, when: "
    "'steps_since_min(value) > 1 and quantile(value, 0.9) > 0.4', clear_after: 1}\n"
    "  - {name: tensors, select: 'collection(\"gradients\")', when: 'l2 < 0.1', "
    "clear_after: 1}\n"
    "  - {name: joined, let: {t: 'metric(\"loss\"){mode=\"train\"}', e: "
    "'metric(\"loss\"){mode=\"eval\"}'}, window: since start, when: 'ewma(e.value, 0.3) > 1.1 * "
    "ewma(t.value, 0.2)', clear_after: 1}\n"
    "  - {name: folded, select: 'metric(\"loss\")', by: [run_uid], when: 'across(spread, value) > "
    "0.1', clear_after: 1}\n"
    "  - {name: samples, select: 'system(\"hw.gpu.utilization\")', by: [node, device], window: "
    "every "
    "1s, when: 'mean(value) < 20%', clear_after: 1}\n"
    "  - {name: ends, select: step(), by: [run_uid], when: 'across(count, duration) > 1', "
    "clear_after: 1}\n"
    "  - {name: chain, sequence: [newest, folded], within: 3 steps, without: tensors, clear_after: "
    "1}\n"
    "  - {name: awaited, sequence: newest, within: 2 steps, without: tensors, clear_after: 1}\n"
    "  - {name: hearing, select: 'metric(\"loss\")', when: 'value > 0.4 and fired(\"newest\", 2 "
    "steps)', clear_after: 1}\n"
    "  - {name: parts, let: {l: 'metric(\"loss\")', s: step()}, window: last 3 steps, when: "
    "'max(l.value) > 2 * last(s.duration)', clear_after: 1}";

struct Fate {
  bool kill = false;
  bool commit = true;
  std::size_t budget = 0;  // of a piece of a snapshot; 0: none
};

std::vector<std::string> told(const std::vector<OwnedFrame>& frames,
                              const std::vector<Fate>& fates) {
  static const RulesConfig kConfig = read_rules_text(kOwnRules).config;
  StateTopic topic(kConfig);
  std::set<std::size_t> killed;
  while (topic.next() < static_cast<std::int64_t>(frames.size())) {
    const auto i = static_cast<std::size_t>(topic.next());
    topic.feed(frames[i]);
    if (fates[i].budget > 0) topic.piece(fates[i].budget);
    if (fates[i].commit) topic.commit();
    if (!fates[i].kill || !killed.insert(i).second) continue;
    topic.restart();
    if (topic.broken()) return {"restart failed"};
  }
  topic.commit();
  return topic.told();
}

std::vector<OwnedFrame> frames_of(const std::vector<int>& one, const std::vector<int>& two,
                                  const std::vector<int>& order) {
  return interleave({story("a", 0, 2, one), story("a", 1, 2, two), story("b", 0, 1, two)}, order);
}

RC_GTEST_PROP(DeclaredRestore, KilledAtAnyPointsTellsWhatWouldHaveBeenTold,
              (std::vector<int> one, std::vector<int> two, const std::vector<int>& order)) {
  one.resize(std::min<std::size_t>(one.size(), 20));
  two.resize(std::min<std::size_t>(two.size(), 20));
  const std::vector<OwnedFrame> frames = frames_of(one, two, order);
  std::vector<Fate> fates(frames.size());
  const std::vector<std::string> expected = told(frames, fates);
  for (Fate& fate : fates) {
    fate.kill = *rc::gen::inRange(0, 20) == 0;
    fate.commit = *rc::gen::inRange(0, 3) != 0;
    fate.budget = *rc::gen::element<std::size_t>(0, 1, 1, 300, 2000, kWhole);
  }
  RC_ASSERT(told(frames, fates) == expected);
}

// The property says something only if every one of the rules has something to tell.
TEST(DeclaredRestore, EachOfTheRulesFires) {
  std::vector<int> one;
  std::vector<int> two;
  for (int i = 0; i < 20; ++i) {
    one.push_back(i);
    two.push_back(7 * i + 3);
  }
  const std::vector<OwnedFrame> frames = frames_of(one, two, {});
  std::string all;
  for (const std::string& event : told(frames, std::vector<Fate>(frames.size())))
    all += event + "\n";
  for (const char* name :
       {"newest", "sliding", "hop", "pieces", "paused", "since", "tensors", "joined", "folded",
        "samples", "ends", "chain", "awaited", "hearing", "parts"}) {
    EXPECT_NE(all.find(std::string(" ") + name + " firing"), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace tocsin::rules::declared
