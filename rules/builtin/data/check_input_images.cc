// Fires when input images are not normalised.
//
// Reads   the statistics channel_sum, channel_sumsq and channel_count of model inputs, of all
//         workers; of tensors of rank 3, which are one channel, the columns will do.
// Window  since the start of the attempt, per mode and tensor; judged when nobody can add to a step
//         that brought new images.
// Fires   once threshold_samples images were seen:
//           mean  |mean of a channel| > threshold_mean
//           std   |standard deviation of a channel − 1| > threshold_std, where that is given
// Quiet   for tensors of a lower rank. Elements that are not finite are left out and counted.
// Source  Amazon SageMaker Debugger, CheckInputImages; docs/rules/check_input_images.md.

#include <cmath>
#include <map>

#include "rules/builtin/shared/classes.h"
#include "rules/contract/sentence.h"
#include "rules/evaluate/step_set.h"

namespace tocsin::rules {
namespace {

constexpr std::string_view kImageKinds[] = {"mean", "std"};

struct CheckInputImages {
  static constexpr std::span<const std::string_view> kKinds = kImageKinds;
  static constexpr std::string_view kExtensions[] = {"threshold_std"};
  static constexpr bool kPerWorker = false;
  static constexpr Sent kSent[] = {core::VectorStat::channel_sum, core::VectorStat::channel_sumsq,
                                   core::VectorStat::channel_count};
  enum Kind : unsigned { kMean, kStd };
  static constexpr std::size_t kManyChannels = 16;  // more are rather pixels of another layout

  struct Config {
    double threshold_mean = 0.2;
    std::uint32_t threshold_samples = 500;
    std::string regex = ".*hybridsequential0_input_0";
    std::int64_t channel = 1;
    std::optional<double> threshold_std;
    bool chosen = false;  // the user has said which tensors are images
  };
  struct Channel {
    double sum = 0;
    double squares = 0;
    double count = 0;
    [[nodiscard]] double mean() const { return sum / count; }
    [[nodiscard]] double std() const {
      return std::sqrt(std::fmax(squares / count - mean() * mean(), 0));
    }
  };
  struct Images {
    double images = 0;
    std::uint64_t non_finite = 0;
    std::vector<Channel> channels;
    template <typename A>
    friend void io(A& a, Images& i) {
      io_all(a, i.images, i.non_finite, i.channels);
    }
  };
  struct State {
    std::map<std::uint64_t, Images> tensors;  // by name
    template <typename A>
    friend void io(A& a, State& s) {
      io_all(a, s.tensors);
    }
  };

  static Defaults defaults(Preset) { return {}; }
  static void read(config::Reader& in, Config& cfg, Preset preset) {
    // 0 … 1, −1 … 1 and standardised images are all normalised, whatever their background.
    if (preset == Preset::tocsin) cfg.threshold_mean = 2;
    in.optional("threshold_mean", cfg.threshold_mean, config::at_least(0.0),
                "largest magnitude of a channel's mean");
    in.optional("threshold_samples", cfg.threshold_samples, config::at_least(1U),
                "images before the first judgement");
    in.optional("regex", cfg.regex, config::not_empty(),
                "images are tensors with role input, or without a role and with a name that "
                "matches this pattern");
    in.optional("channel", cfg.channel, "axis of the channels; negative: from the last one on");
    if (cfg.channel == 0) in.error("channel", "axis 0 holds the images of a batch");
    in.optional("threshold_std", cfg.threshold_std, config::if_given(config::at_least(0.0)),
                "how far from 1 a channel's standard deviation may be; null = off");
    std::string error;
    if (Selection unused; !unused.add_regex(cfg.regex, error)) in.error("regex", error);
  }
  static std::vector<Need> needs(const Config&) { return {{"inputs", {"channels"}}}; }
  static void adjust(Config& cfg, Program& program) {
    cfg.chosen = !program.selection.empty();
    if (cfg.chosen) return;
    std::string error;
    program.selection.add_collection("inputs");
    program.selection.add_regex(cfg.regex, error);
  }

  // --------------------------------------------------------------------------- accumulation

  enum class Added { images, no_images, broken };

  static Added add(const Config& cfg, Images& images, const StepRow& row, const Name* name) {
    if (name == nullptr || name->shape.empty()) return Added::broken;
    const std::vector<std::int64_t>& shape = name->shape;
    const auto rank = static_cast<std::int64_t>(shape.size());
    const std::int64_t axis = cfg.channel < 0 ? rank + cfg.channel : cfg.channel;
    if (rank < 3 || axis < 1 || axis >= rank) return Added::no_images;
    double size = 1;
    for (std::size_t i = 1; i < shape.size(); ++i) size *= static_cast<double>(shape[i]);
    const std::size_t channels = rank == 3 ? 1 : static_cast<std::size_t>(shape[axis]);
    if (!(size > 0) || channels > kMostClasses || row.row.count == 0) return Added::no_images;
    std::vector<Channel> sent = channels_of(row);
    if (sent.size() != channels) return Added::broken;
    images.channels.resize(channels);
    for (std::size_t c = 0; c < channels; ++c) {
      images.channels[c].sum += sent[c].sum;
      images.channels[c].squares += sent[c].squares;
      images.channels[c].count += sent[c].count;
    }
    images.images += row.row.n() / size;
    images.non_finite += row.row.non_finite();
    return Added::images;
  }

  // Empty: not sent, or not what it should be.
  static std::vector<Channel> channels_of(const StepRow& row) {
    const auto* sums = row.vector(core::VectorStat::channel_sum);
    const auto* squares = row.vector(core::VectorStat::channel_sumsq);
    const auto* counts = row.vector(core::VectorStat::channel_count);
    std::vector<Channel> out;
    if (sums == nullptr && squares == nullptr && counts == nullptr) {
      if (row.row.non_finite() > 0) return out;
      out.push_back({row.row.sum, row.row.sumsq, row.row.n()});
      return out;
    }
    if (sums == nullptr || squares == nullptr || counts == nullptr) return out;
    if (squares->size() != sums->size() || counts->size() != sums->size()) return out;
    if (!are_counts(*counts)) return out;
    for (std::size_t c = 0; c < sums->size(); ++c) {
      if (!std::isfinite((*sums)[c]) || !std::isfinite((*squares)[c])) return {};
      out.push_back({(*sums)[c], (*squares)[c], (*counts)[c]});
    }
    return out;
  }

  static bool are_images(const Config& cfg, const StepRow& row, const Name* name) {
    if (row.scalar) return false;
    if (cfg.chosen) return true;
    core::Role role = row.role();
    if (role == core::Role::other && name != nullptr) role = name->role;
    return role == core::Role::input || role == core::Role::other;
  }

  static void judge(const Config& cfg, State& state, const StepSet& set, SetReport& report) {
    std::map<std::uint64_t, std::pair<const StepRow*, Added>> brought;  // by name
    for (const StepRow& row : set.rows) {
      const Name* name = report.scope().find(row.name());
      if (!are_images(cfg, row, name)) continue;
      const Added what = add(cfg, state.tensors[row.name()], row, name);
      const auto [at, fresh] = brought.try_emplace(row.name(), &row, what);
      if (!fresh && what == Added::images) at->second = {&row, what};
    }
    for (const auto& [hash, one] : brought) {
      const Images& images = state.tensors[hash];
      const StepRow& row = *one.first;
      Verdict verdict = kInsufficient;
      if (one.second == Added::no_images) verdict = kNotApplicable;
      if (one.second == Added::images) verdict = compare(cfg, images);
      const std::string name = report.scope().text(hash);
      report.evaluated({{"tensor", name}}, name, verdict,
                       [&](const Subject& subject, unsigned kind) {
                         Finding finding = explain(cfg, images, subject, kind);
                         finding.tensor = report.tensor(row);
                         return finding;
                       });
    }
  }

  // ------------------------------------------------------------------------------ judgement

  /// The channel that is furthest off; nullptr: none has an element.
  template <typename Off>
  static const Channel* worst(const Images& images, const Off& off) {
    const Channel* out = nullptr;
    for (const Channel& one : images.channels) {
      if (one.count > 0 && (out == nullptr || off(one) > off(*out))) out = &one;
    }
    return out;
  }
  static double off_mean(const Channel& one) { return std::fabs(one.mean()); }
  static double off_std(const Channel& one) { return std::fabs(one.std() - 1); }

  static Verdict compare(const Config& cfg, const Images& images) {
    const Channel* mean = worst(images, off_mean);
    if (images.images < cfg.threshold_samples || mean == nullptr) return kInsufficient;
    std::uint8_t kinds = off_mean(*mean) > cfg.threshold_mean ? 1U << kMean : 0;
    if (cfg.threshold_std && off_std(*worst(images, off_std)) > *cfg.threshold_std) {
      kinds = static_cast<std::uint8_t>(kinds | 1U << kStd);
    }
    return kinds == 0 ? kOk : Verdict{EvaluationOutcome::hit, kinds};
  }

  static Finding explain(const Config& cfg, const Images& images, const Subject& subject,
                         unsigned kind) {
    const Channel* channel = kind == kMean ? worst(images, off_mean) : worst(images, off_std);
    const auto number = channel - images.channels.data();
    Finding finding;
    if (kind == kMean) {
      finding = Finding::that("mean", channel->mean());
      finding.is(">", "threshold_mean", cfg.threshold_mean)
          .titled(subject.name, Verb::has, "a mean far from 0")
          .says(sentence("Channel {} of {} has mean {} over {} images (limit ±{}) at {}.", number,
                         subject.name, channel->mean(), images.images, cfg.threshold_mean,
                         subject.place()));
    } else {
      finding = Finding::that("std", channel->std());
      finding.is(">", "threshold_std", *cfg.threshold_std)
          .titled(subject.name, Verb::has, "a standard deviation far from 1")
          .says(sentence(
              "Channel {} of {} has standard deviation {} over {} images (1 ± {}) at {}.", number,
              subject.name, channel->std(), images.images, *cfg.threshold_std, subject.place()));
    }
    if (images.channels.size() > kManyChannels) {
      finding.adds(sentence("Axis {} has {} entries: if the layout is NHWC, set channel: -1.",
                            cfg.channel, images.channels.size()));
    }
    core::ValueList means;
    core::ValueList stds;
    for (std::size_t c = 0; c < std::min<std::size_t>(images.channels.size(), 100); ++c) {
      means.emplace_back(images.channels[c].mean());
      stds.emplace_back(images.channels[c].std());
    }
    return finding
        .advises(
            "Subtract the mean of each channel and divide by its standard deviation. Use the same "
            "numbers in training and evaluation.")
        .with("images", images.images)
        .with("mean", std::move(means))
        .with("std", std::move(stds))
        .with("non_finite", images.non_finite);
  }
};

}  // namespace

RuleDescriptor check_input_images() {
  return {.name = "check_input_images",
          .original_name = "CheckInputImages",
          .title = "Input images are not normalised.",
          .unit = "accumulator",
          .needs = "collection inputs with statistic channels",
          .presets =
              "tocsin accepts a mean of up to 2: images in 0 … 1 or −1 … 1 are normalised whatever "
              "their background is. original accepts 0.2.",
          .severity = core::Severity::warning,
          .groups = group::kPyTorch,
          .read = &read_step_set_rule<CheckInputImages>};
}

}  // namespace tocsin::rules
