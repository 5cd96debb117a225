#include "app/view/summary_text.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tocsin::app {
namespace {

using core::ValueList;
using core::ValueMap;

ValueMap of_a_node() {
  return {{"nodes", ValueMap{{"node-a", ValueMap{{"gpu", ValueMap{{"p50", 41.5}, {"max", 66}}},
                                                 {"cpu", ValueMap{{"p50", 1.0 / 3}}},
                                                 {"means", "too little work"}}}}},
          {"more_nodes", 2}};
}

TEST(SummaryText, OneLine) {
  EXPECT_EQ(summary_line(of_a_node(), 1000),
            "nodes: node-a: gpu: p50 41.5, max 66; cpu: p50 0.333333; means too little work; "
            "more_nodes 2");
  EXPECT_EQ(summary_line({}, 10), "");
}

TEST(SummaryText, IsCutBetweenCharacters) {
  EXPECT_EQ(summary_line({{"a", "äöü"}}, 5), "a ä…");
  EXPECT_EQ(summary_line({{"a", "äöü"}}, 8), "a äöü");
}

TEST(SummaryText, LongListsAreCut) {
  ValueList list;
  for (int i = 0; i < 9; ++i) list.emplace_back(i);
  EXPECT_EQ(summary_line({{"rounds", list}}, 100), "rounds 0, 1, 2, 3, 4, 5, 6, 7, … (9)");
  list.pop_back();
  EXPECT_EQ(summary_line({{"rounds", list}}, 100), "rounds 0, 1, 2, 3, 4, 5, 6, 7");
}

TEST(SummaryText, WhatIsNoFiniteNumberIsNamed) {
  EXPECT_EQ(summary_line({{"loss", std::nan("")}, {"none", core::Value()}}, 100),
            "loss \"NaN\", none null");
}

TEST(SummaryText, Lines) {
  EXPECT_EQ(summary_lines(of_a_node(), 4),
            "    nodes\n"
            "      node-a\n"
            "        gpu  p50 41.5, max 66\n"
            "        cpu  p50 0.333333\n"
            "        means  too little work\n"
            "    more_nodes  2\n");
  EXPECT_EQ(summary_lines({{"a", 1}, {"b", 2}}, 2), "  a 1, b 2\n");
}

TEST(SummaryText, NamesFromOutsideMoveNoCursor) {
  EXPECT_EQ(summary_line({{"a\x1b[2J", "b\nc"}}, 100), "a [2J b c");
}

}  // namespace
}  // namespace tocsin::app
