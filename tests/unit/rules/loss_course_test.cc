#include "rules/contract/loss_course.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tocsin::rules {
namespace {

constexpr std::uint64_t kLoss = 7;

// Losses of the steps from `from` on, each `change` beside the one before.
void go(LossCourse& course, std::int64_t from, int count, double first, double change,
        double noise = 0) {
  for (int i = 0; i < count; ++i) {
    course.add(kLoss, from + i, first + change * i + (i % 2 == 0 ? noise : -noise));
  }
}

TEST(LossCourse, FallsWhenTheNewestFiveLieSurelyBelowAllThatWasKnown) {
  LossCourse course;
  go(course, 0, 20, 2, 0);
  EXPECT_FALSE(course.fallen_since(10)) << "it stands";
  go(course, 20, 10, 1.9, -0.02);
  EXPECT_TRUE(course.fallen_since(19));
  EXPECT_FALSE(course.fallen_since(29)) << "since the newest nothing came";
}

TEST(LossCourse, NoiseIsNoFall) {
  LossCourse course;
  go(course, 0, 20, 2, 0, 0.3);
  go(course, 20, 5, 1.9, 0, 0.3);
  EXPECT_FALSE(course.fallen_since(19)) << "0.1 of a deviation of 0.3";
  LossCourse quiet;
  go(quiet, 0, 20, 2, 0, 0.01);
  go(quiet, 20, 5, 1.9, 0, 0.01);
  EXPECT_TRUE(quiet.fallen_since(19));
}

TEST(LossCourse, AHundredthIsTheLeastFall) {
  LossCourse course;
  go(course, 0, 10, 2, 0);
  go(course, 10, 5, 1.985, 0);
  EXPECT_FALSE(course.fallen_since(9));
  LossCourse more;
  go(more, 0, 10, 2, 0);
  go(more, 10, 5, 1.97, 0);
  EXPECT_TRUE(more.fallen_since(9));
}

TEST(LossCourse, ABestThatIsLongGoneStillCounts) {
  LossCourse course;
  go(course, 0, 5, 1, 0);
  go(course, 5, 100, 3, 0);
  go(course, 105, 5, 2, 0);
  EXPECT_FALSE(course.fallen_since(104)) << "it was 1 at first";
  go(course, 110, 5, 0.9, 0);
  EXPECT_TRUE(course.fallen_since(104));
}

TEST(LossCourse, TheFirstFiveStandForTheBeginning) {
  LossCourse course;
  go(course, 0, 4, 2, 0);
  EXPECT_FALSE(course.fallen_since(0)) << "too little is known";
  go(course, 4, 6, 1.5, -0.1);
  EXPECT_TRUE(course.fallen_since(0));
  EXPECT_TRUE(course.fallen_since(-1));
}

TEST(LossCourse, WhatIsNoNumberIsLeftOut) {
  LossCourse course;
  go(course, 0, 10, 2, 0);
  course.add(kLoss, 10, std::nan(""));
  EXPECT_FALSE(course.fallen_since(9));
  go(course, 11, 20, 1, 0);
  EXPECT_TRUE(course.fallen_since(9)) << "one step that brought none ends no training";
  course.add(kLoss, 31, HUGE_VAL);
  EXPECT_FALSE(course.fallen_since(9)) << "it does not fall now";
  EXPECT_EQ(course.lost(), 1U);
  course.add(kLoss, 32, 1);
  EXPECT_TRUE(course.fallen_since(9));
}

TEST(LossCourse, BehindFiveInARowThatAreNoNumbersItBeginsAnew) {
  LossCourse course;
  go(course, 0, 10, 2, 0);
  go(course, 10, 10, 1, 0);
  go(course, 20, 50, std::nan(""), 0);
  EXPECT_FALSE(course.fallen_since(9)) << "what was is no word for what is";
  EXPECT_EQ(course.lost(), 50U);
  go(course, 70, 9, 1.5, 0);
  EXPECT_FALSE(course.fallen_since(9)) << "too little is known again";
  go(course, 79, 6, 1.2, 0);
  EXPECT_TRUE(course.fallen_since(78)) << "below where it began anew, whatever was before";
  course.add(kLoss + 1, 85, std::nan(""));
  EXPECT_TRUE(course.fallen_since(78)) << "another loss";
}

TEST(LossCourse, OneLossIsFollowed) {
  LossCourse course;
  for (int i = 0; i < 20; ++i) {
    course.add(kLoss, i, 2);
    course.add(kLoss + 1, i, 2 - 0.1 * i);
  }
  EXPECT_FALSE(course.fallen_since(5)) << "the first name that came";
}

}  // namespace
}  // namespace tocsin::rules
