// Whether updates go along their gradients, as it goes on: movement's state of one run, and what it
// comes to. O(1).
#pragma once

#include <algorithm>
#include <cmath>

#include "rules/evidence/mean_evidence.h"

namespace tocsin::rules {

/// What H₀ holds of a run that needs nobody.
struct MovementBounds {
  double uphill = 0;      // mean cosine of gradient and way
  double against = 0.3;   // successive gradients: minus this is the least mean cosine,
  double along = 0.9;     // and this the largest
  double still = 0.001;   // of the median way of its role, below which a tensor stands still
  double alpha = 0.0005;  // per kind and run
};

/// What one step says of the updates that were looked at. Sums over the optimizers.
struct MovementSaid {
  double looks = 0;  // optimizers that were looked at
  double stands_for = 0;
  double along = 0;     // Σ of products of gradient and way
  double gradient = 0;  // Σ of squares
  double update = 0;
  double turns = 0;  // optimizers whose gradient was compared with the one before
  double turned = 0;
  double payers = 0;  // optimizers that say what the loss must fall by
  double pays = 0;

  [[nodiscard]] bool comparable() const {
    return looks > 0 && gradient > 0 && update > 0 && std::isfinite(along);
  }
  [[nodiscard]] double cosine() const {
    return std::clamp(along / std::sqrt(gradient) / std::sqrt(update), -1.0, 1.0);
  }
};

/// Trivially copyable, without padding.
struct MovementCourse {
  double looks = 0;
  double cosines = 0;
  double climbed = 0;  // Σ of products, each times the updates that it stands for
  MeanEvidence up;     // against "the mean cosine is at most `uphill`"
  MeanEvidence down;   // against "it is at least that"
  double turns = 0;
  double turned = 0;
  MeanEvidence opposed;   // against "the mean is at least -`against`"
  MeanEvidence alike;     // against "it is at most `along`"
  MeanEvidence moderate;  // against "it is at least `along`"
  MeanEvidence steady;    // against "it is at most -`against`"

  void add(const MovementSaid& said, const MovementBounds& bounds) {
    if (said.comparable()) {
      const double cosine = said.cosine();
      ++looks;
      cosines += cosine;
      climbed += said.along * std::max(1.0, said.stands_for / said.looks);
      up.against_at_most(share(cosine), share(bounds.uphill));
      down.against_at_least(share(cosine), share(bounds.uphill));
    }
    if (said.turns > 0) {
      const double turn = std::clamp(said.turned / said.turns, -1.0, 1.0);
      ++turns;
      turned += turn;
      opposed.against_at_least(share(turn), share(-bounds.against));
      steady.against_at_most(share(turn), share(-bounds.against));
      alike.against_at_most(share(turn), share(bounds.along));
      moderate.against_at_least(share(turn), share(bounds.along));
    }
  }
  /// Momentum goes up at times, and over all updates down: both must say it.
  [[nodiscard]] bool goes_up(const MovementBounds& bounds) const {
    return climbed > 0 && up.evidence() >= -std::log(bounds.alpha);
  }
  [[nodiscard]] bool goes_down(const MovementBounds& bounds) const {
    return climbed < 0 && down.evidence() >= -std::log(bounds.alpha);
  }
  [[nodiscard]] bool oscillates(const MovementBounds& bounds) const {
    return opposed.evidence() >= -std::log(bounds.alpha);
  }
  [[nodiscard]] bool crawls(const MovementBounds& bounds) const {
    return alike.evidence() >= -std::log(bounds.alpha);
  }
  [[nodiscard]] bool turns_well(const MovementBounds& bounds) const {
    return steady.evidence() >= -std::log(bounds.alpha) &&
           moderate.evidence() >= -std::log(bounds.alpha);
  }
  [[nodiscard]] double cosine() const { return looks > 0 ? cosines / looks : 0; }
  [[nodiscard]] double turn() const { return turns > 0 ? turned / turns : 0; }

 private:
  /// A cosine as a number between 0 and 1.
  [[nodiscard]] static double share(double cosine) { return (1 + cosine) / 2; }
};

}  // namespace tocsin::rules
