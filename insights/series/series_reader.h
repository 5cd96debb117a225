// Questions to the store of series. A reader is made for one request and sees one state of the file.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/codes.h"
#include "core/function_ref.h"
#include "core/result.h"
#include "insights/series/column_codec.h"
#include "insights/series/loss_line.h"
#include "insights/series/series_ages.h"
#include "insights/series/series_schema.h"
#include "insights/store/set_aside.h"

namespace tocsin::insights {

class StoreDatabase;
struct ExponentialCounts;

struct NameLine {
  FamilyKind kind = FamilyKind::scalar;
  std::int64_t hash = 0;
  std::string text, unit;
  std::int64_t order = 0;  // of appearance
  core::Role role = core::Role::other;
  std::int64_t direction = 0;  // -1 smaller is better, 1 larger is, 0 unknown
  std::string shape, collections;
};

/// What all series of a name have together.
struct NameTally {
  std::int64_t stored = 0, series = 0;
  std::int64_t x_first = 0, x_last = 0;
  std::optional<double> worst;        // the greatest finite magnitude ever
  std::optional<std::int64_t> bad_x;  // the first step that was not finite
};

/// What is not there, and why.
struct RunGaps {
  std::int64_t refused = 0;   // values, because the run has too many series
  bool tensors_gone = false;  // some of its tensors gave way to newer runs
};

/// The series of one name, mode and segment.
struct FamilyLine {
  std::int64_t id = 0;
  FamilyKind kind = FamilyKind::scalar;
  core::Mode mode = core::Mode::global;
  std::string worker;
  std::int64_t rank = 0, attempt = 0, incarnation = 0;
  std::int64_t k0 = -1;      // level of the lowest buckets that are kept; -1: none are
  std::int64_t rows = 0;     // stored
  std::int64_t repeats = 0;  // left out, because the step was there
  std::int64_t x_first = 0;
  std::int64_t x_chunked = -1;  // to here from chunks and buckets, behind it from pieces
  std::int64_t x_last = -1;
  std::int64_t bad_x = -1;  // the first that is not finite; -1: all are
  /// Rows, and buckets of each level, with x before these are gone by their age; 0: none are.
  std::array<std::int64_t, kKeptParts> kept_from{};

  /// Whether single values from `lo` on are gone, and only buckets tell of them.
  [[nodiscard]] bool rows_gone(std::int64_t lo) const;
  /// The least level of which every bucket from `lo` on is there; 0: the rows are.
  [[nodiscard]] std::int64_t least_level(std::int64_t lo) const;
};

/// A node that served workers of a run, and when it did: milliseconds, UTC.
struct ServedNode {
  std::string owner;  // whose series its samples are: a run to the reader's questions
  std::string name;
  std::int64_t x_first = 0, x_last = 0;
};

struct WorkerLine {
  std::string name;
  std::int64_t rank = 0, attempt = 0, incarnation = 0;
  std::string node;  // empty: it has not said
  std::optional<std::int64_t>
      said;  // when it first did, milliseconds, UTC; nullopt: it is not known
};

/// A worker of a run on the node that it told.
struct PlacedWorker {
  std::string run, node, worker;
  std::int64_t rank = 0, attempt = 0;
};

/// Histograms with x in [lo, hi), of each stretch of `width` that begins at a multiple of it at most so
/// many.
struct HistogramPart {
  std::int64_t lo = 0, hi = 0, width = 1, most = 1;
};

struct SeriesSize {
  std::int64_t runs = 0, families = 0, values = 0, bytes = 0;
};

/// A chunk of rows whose bytes are not what was written.
struct BadChunk {
  std::int64_t family = 0, x0 = 0;
};
using BadChunkHook = std::function<void(const BadChunk&)>;

class SeriesReader {
 public:
  /// unavailable: there is no store yet, or it cannot be read.
  static core::Result<std::unique_ptr<SeriesReader>> open(const std::string& path);
  ~SeriesReader();

  /// In the order of appearance; of tensors that is their order in the model, as far as the producer
  /// tells it in that order.
  std::vector<NameLine> names(const std::string& run, std::span<const FamilyKind> kinds);
  /// By the hash of the name. `mode`: of its series only.
  std::unordered_map<std::int64_t, NameTally> tallies(const std::string& run, FamilyKind kind,
                                                      std::optional<core::Mode> mode);
  RunGaps gaps(const std::string& run);
  /// What was lost on the way, by lane and reason; empty: nothing is known to be.
  std::vector<LossLine> losses(const std::string& run);
  std::vector<FamilyLine> families(const std::string& run, FamilyKind kind, std::int64_t name);
  /// Of all names of the kind, in order of `names`, then as above.
  void all_families(const std::string& run, FamilyKind kind,
                    core::FunctionRef<void(std::int64_t name, FamilyLine&& family)> visit);
  /// Stretches of rows with x in [lo, hi), in order; the first and last may reach beyond. Columns that
  /// are not `wanted` (by bits) are empty.
  void rows(const FamilyLine& family, std::int64_t lo, std::int64_t hi,
            core::FunctionRef<void(const SeriesRows&)> visit, std::uint64_t wanted = kAllColumns);
  /// Of the values with x in [lo, hi): all buckets of the level that are not empty.
  Buckets buckets(const FamilyLine& family, std::size_t column, std::int64_t lo, std::int64_t hi,
                  std::int64_t level);
  /// The same, told bucket by bucket; one of a number may come in parts, in order. Where no level so low is kept
  /// any more, a wider bucket stands at its first x (least_level): each is told once, where it begins.
  void visit_buckets(const FamilyLine& family, std::size_t column, std::int64_t lo, std::int64_t hi,
                     std::int64_t level,
                     core::FunctionRef<void(std::int64_t at, const Bucket& part)> visit);
  /// Of a tensor, in order of x; false: there are more of some stretch.
  bool histograms(const FamilyLine& family, const HistogramPart& part,
                  core::FunctionRef<void(std::int64_t x, const ExponentialCounts& counts)> visit);
  /// Whether older histograms of the run gave way to newer ones.
  bool histograms_gone(const std::string& run);
  /// The first x whose number in the column, which never falls, is at least `least`; behind the last
  /// one if none is.
  std::int64_t x_at(const FamilyLine& family, std::size_t column, double least);
  /// The oldest row's number; nullopt: it is gone, and its bucket does not tell it.
  std::optional<double> first(const FamilyLine& family, std::size_t column);
  /// The newest row's number; nullopt: there is none, or as above.
  std::optional<double> last(const FamilyLine& family, std::size_t column);
  std::vector<ServedNode> nodes(const std::string& run);
  /// In order of rank; a worker is there once for each of its clients.
  std::vector<WorkerLine> workers(const std::string& run);
  /// Every node whose agent has sent samples, by name; without when it served whom.
  std::vector<ServedNode> all_nodes();
  /// Whether a sample of the node (ServedNode::owner) had come by `until`: milliseconds, UTC.
  bool sampled_by(const std::string& owner, std::int64_t until);
  /// The workers of all runs that have told their node, in order of run and rank.
  std::vector<PlacedWorker> placed_workers();
  /// By hash; of a kind of names as the table has it.
  std::unordered_map<std::int64_t, std::string> texts(const std::string& run, std::int64_t kind);
  /// Whether spans of the run, or samples of the node, gave way to newer ones.
  bool bulk_gone(const std::string& owner);
  SeriesSize size();
  /// Pages that were read from the file so far: what a question costs, whatever machine it is.
  [[nodiscard]] std::int64_t pages_read() const;
  /// What failed while reading, if anything did.
  core::Status failure();
  /// failure() tells `damage` if the file is damaged.
  void tell_damage(DamageHook damage) { damage_ = std::move(damage); }
  /// failure() tells `bad` each chunk that cannot be decoded, and is unavailable then: whoever drops it makes the
  /// next answer whole but for it. Without it such a chunk is damage of the file.
  void tell_bad_chunks(BadChunkHook bad) { bad_chunk_ = std::move(bad); }

 private:
  explicit SeriesReader(std::unique_ptr<StoreDatabase> database);
  using BucketVisit = core::FunctionRef<void(std::int64_t, const Bucket&)>;
  struct Questions;
  void stored_rows(const FamilyLine& family, std::int64_t lo, std::int64_t hi,
                   core::FunctionRef<bool(std::string_view)> visit);
  void add_rows(const FamilyLine& family, std::size_t column, std::int64_t lo, std::int64_t hi,
                std::int64_t level, BucketVisit out);
  struct BlockRange;
  void add_blocks(const FamilyLine& family, const BlockRange& range, BucketVisit out);
  void add_aged(const FamilyLine& family, const BlockRange& range, std::size_t part,
                BucketVisit out);

  DamageHook damage_;
  std::unique_ptr<StoreDatabase> database_;
  std::unique_ptr<Questions> ask_;
  bool damaged_ = false;
  BadChunkHook bad_chunk_;
  std::vector<BadChunk> bad_chunks_;
  bool aged_ = false;  // something is gone by its age
};

}  // namespace tocsin::insights
