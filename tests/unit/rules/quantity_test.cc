#include "rules/contract/quantity.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tocsin::rules {
namespace {

TEST(Figures, HaveThreeSignificantDigitsAndNoTrailingZeros) {
  EXPECT_EQ(figure(0), "0");
  EXPECT_EQ(figure(0.5), "0.5");
  EXPECT_EQ(figure(0.0001249), "0.000125");
  EXPECT_EQ(figure(-12.345), "-12.3");
  EXPECT_EQ(figure(2.3e-9), "2.3e-09");
}

TEST(Figures, CountsUpToTenMillionAreWhole) {
  EXPECT_EQ(figure(999.4), "999");
  EXPECT_EQ(figure(999.6), "1000");
  EXPECT_EQ(figure(1234567), "1234567");
  EXPECT_EQ(figure(-4096), "-4096");
  EXPECT_EQ(figure(12345678), "1.23e+07");
}

TEST(Figures, WhatIsNotFiniteHasItsName) {
  EXPECT_EQ(figure(std::nan("")), "NaN");
  EXPECT_EQ(figure(-std::numeric_limits<double>::infinity()), "-Inf");
}

TEST(Quantities, SizesAreInTheLargestUnitThatFits) {
  EXPECT_EQ(size_text(0), "0 B");
  EXPECT_EQ(size_text(131), "131 B");
  EXPECT_EQ(size_text(1024), "1 KiB");
  EXPECT_EQ(size_text(5.2e6), "4.96 MiB");
  EXPECT_EQ(size_text(0x1.4p30), "1.25 GiB");
  EXPECT_EQ(size_text(0x1p41), "2 TiB");
}

TEST(Quantities, DurationsStayInSecondsForTwoMinutesAndInMinutesForTwoHours) {
  EXPECT_EQ(duration_text(0), "0 us");
  EXPECT_EQ(duration_text(0.00025), "250 us");
  EXPECT_EQ(duration_text(0.0123), "12.3 ms");
  EXPECT_EQ(duration_text(90), "90 s");
  EXPECT_EQ(duration_text(1800), "30 min");
  EXPECT_EQ(duration_text(9000), "2.5 h");
  EXPECT_EQ(duration_text(std::nan("")), "NaN");
}

}  // namespace
}  // namespace tocsin::rules
