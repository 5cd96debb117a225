// Numbers by step into the store of series, in transactions that hold the positions too.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/codes.h"
#include "core/identity.h"
#include "core/lifecycle.h"
#include "core/record.h"
#include "core/result.h"
#include "core/time.h"
#include "insights/series/column_codec.h"
#include "insights/series/series_ages.h"
#include "insights/series/series_schema.h"
#include "insights/series/waiting_rows.h"
#include "insights/store/set_aside.h"

namespace tocsin::insights {

class StoreDatabase;
class StoreLock;
class StoreStatement;

/// One client of a worker from its opening to its end: inside it, x of a series strictly grows.
struct SegmentOf {
  core::RunUid run;
  std::uint64_t worker = 0;  // hash of its name
  std::uint64_t incarnation = 0;
  std::uint32_t attempt = 0;
  std::uint32_t rank = 0;
};

/// What folds keep between two commits. Numbers are stored: never renumber them.
enum class OpenKind : std::int64_t { sweep = 1, phases = 2 };

/// What a producer says of a name.
struct SeriesName {
  std::uint64_t hash = 0;
  std::string_view text;
  core::Role role = core::Role::other;
  std::string_view unit;
  std::int64_t direction = 0;         // -1 smaller is better, 1 larger is, 0 unknown
  std::string_view shape = {};        // "64×128"; empty: unknown
  std::string_view collections = {};  // by commas
};

/// The one writer of a store. Not thread-safe. What fails shows at commit(), which then has written
/// nothing: make another writer.
class SeriesWriter {
 public:
  static constexpr std::size_t kChunkRows = 512;
  static constexpr std::int64_t kMostFamilies = 200'000;  // of a run; what is beyond is left out
  static constexpr std::int64_t kMostSamples = 20'000;    // series of a node
  static constexpr std::int64_t kMostTensors = 180'000;   // of these: a loss has room beside them

  /// As EventWriter::open.
  static core::Result<std::unique_ptr<SeriesWriter>> open(const std::string& path,
                                                          std::string_view source, SetAside& moved,
                                                          const std::string& condemned = "");
  ~SeriesWriter();
  SeriesWriter(const SeriesWriter&) = delete;
  SeriesWriter& operator=(const SeriesWriter&) = delete;

  [[nodiscard]] std::vector<core::Position> positions();

  /// The number of a segment, from then on.
  std::int64_t segment(const SegmentOf& of);
  /// False: a frame of this sequence number or a later one was seen.
  bool is_new(std::int64_t segment, std::uint16_t shard, std::uint64_t sequence);
  /// `worker` names are of kind 4, as on the wire; others of the kind of their family.
  void name_worker(const core::RunUid& run, std::uint64_t hash, std::string_view text);
  void name(const core::RunUid& run, FamilyKind kind, const SeriesName& name);
  /// A series of a node as its agent calls it, which is not what its family is called.
  void name_sent(const core::RunUid& node, std::uint64_t hash, std::string_view text);
  void name_span(const core::RunUid& run, std::uint64_t hash, std::string_view text);
  /// Names that were said before, of a kind as the table has it.
  std::vector<std::pair<std::uint64_t, std::string>> names_of(const core::RunUid& run,
                                                              std::int64_t kind);
  /// The node (node_owner.h) served workers of the run at `x`, milliseconds.
  void link_node(const core::RunUid& run, const core::RunUid& node, std::int64_t x);
  /// The node that a worker says it is on, and when it first said so: milliseconds, UTC.
  void set_node(const SegmentOf& of, std::string_view node, std::int64_t said);
  /// What a fold has begun and goes on with when the store is opened again; empty: nothing.
  std::string open_of(const SegmentOf& of, OpenKind what);
  void keep_open(const SegmentOf& of, OpenKind what, std::string_view bytes);
  /// `values`: one of each column of the kind. What is not beyond the last x is a repeat, and dropped;
  /// false says that of it, and of a series too many.
  bool add(const SegmentOf& of, FamilyKind kind, std::uint64_t name, core::Mode mode,
           std::int64_t x, std::span<const double> values);
  /// As add, of what has no x but its place among all of its series.
  void append(const SegmentOf& of, FamilyKind kind, std::uint64_t name, core::Mode mode,
              std::span<const double> values);
  /// Elements of the tensor by magnitude (exponential_counts.h), at an x that was just added.
  void add_histogram(const SegmentOf& of, std::uint64_t name, core::Mode mode, std::int64_t x,
                     std::string_view bytes);
  void heard(const core::RunUid& run, std::int64_t micros);
  /// As is_new, over frames of all kinds: counts the numbers between this frame and the one before as
  /// missing. What was before a segment's first frame is not counted.
  bool hear_frame(std::int64_t segment, std::uint16_t shard, std::uint64_t sequence);
  /// What a hook says it has dropped (LifecycleEvent::gap).
  void report_loss(std::int64_t segment, const core::Lifecycle& gap);

  /// Makes durable what was seen together with the positions, and forgets the runs that changed.
  core::Status commit(const std::vector<core::Position>& positions);
  [[nodiscard]] const std::set<core::RunUid>& changed() const { return changed_; }
  /// Rows that were seen since the last commit: whoever reads much commits before they are too many.
  [[nodiscard]] std::size_t waiting() const { return waiting_.rows(); }
  /// What these take in memory, about.
  [[nodiscard]] std::size_t waiting_bytes() const { return waiting_.bytes(); }
  /// Values that were left out since the opening, because a run has too many series.
  [[nodiscard]] std::uint64_t refused() const { return refused_; }

  /// Runs by uid of which forget() and drop_old() take nothing from now on, in place of those named before.
  void spare(std::set<std::string> runs) { spared_ = std::move(runs); }
  /// Forgets runs unheard of since before `before`. While the file is larger than `max_bytes` it forgets
  /// the spans, the samples, the histograms (the older half first) and the tensors of the least lately
  /// heard ones, and at last these runs; at most
  /// `most` at once. How many it has forgotten.
  core::Result<std::size_t> forget(core::WallTime before, std::uint64_t max_bytes,
                                   std::size_t most);
  /// Drops a chunk whose bytes are not what was written, and keeps that it was there (SeriesReader::losses, check_series).
  /// Its buckets stay. One that is whole, or gone already, is left as it is. True: it was dropped.
  core::Result<bool> drop_bad(std::int64_t family, std::int64_t x0);
  /// Drops what is older than its class is kept, oldest first: whole chunks, then blocks of buckets, each only once
  /// what it was made from is gone. Looks at about `most` chunks and families a call, and goes on there with the
  /// next. True: it has been through all of them, and begins anew with the next call.
  core::Result<bool> drop_old(const KeepAges& keep, core::WallTime now, std::size_t most);

 private:
  struct KnownRun {
    std::int64_t id = 0;
    std::int64_t families = 0;
    std::int64_t heard = 0;
    std::int64_t refused = 0;
    bool changed = false;  // is in changed_
  };
  struct Family {
    std::int64_t id = 0;
    FamilyKind kind = FamilyKind::scalar;
    std::int64_t k0 = -1;  // -1: nothing is rolled yet
    std::int64_t rows = 0;
    std::int64_t chunked = 0;  // rows of chunks
    std::int64_t pieces = 0;   // about
    std::int64_t x_first = 0;
    std::int64_t x_chunked = -1;
    std::int64_t x_last = -1;
    std::int64_t repeats = 0;
    std::int64_t worst = -1;  // as the table has it
    std::int64_t bad_x = -1;  // the first step that was not finite
    std::int64_t used = 0;    // the commit that used it last
    WaitingRows::Chain waiting;
  };
  using FamilyKey =
      std::tuple<std::int64_t, std::int64_t, std::uint64_t, std::int64_t, std::int64_t>;
  using SegmentKey = std::tuple<std::int64_t, std::uint64_t, std::uint64_t, std::uint32_t>;
  // May throw, as far as the table knows: then it keeps hashes, and does not make them anew when it looks.
  struct HashOfKey {
    std::size_t operator()(const FamilyKey& key) const;
  };
  struct HeardFrames {
    std::int64_t last = -1;  // sequence number; -1: none yet
    std::int64_t missing = 0;
    bool fresh = false;
  };
  struct ServedSpan {
    std::int64_t first = 0, last = -1;
    bool fresh = false;
  };
  struct Statements;

  SeriesWriter(std::unique_ptr<StoreDatabase> database, std::unique_ptr<StoreLock> lock);
  void begin();
  KnownRun& known(const core::RunUid& run);
  Family* family(const core::RunUid& run, const FamilyKey& key);
  void refuse(const core::RunUid& run);
  void put_row(Family& family, const core::RunUid& run, std::int64_t x,
               std::span<const double> values);
  void forget_latest();
  void write_links();
  void write_heard_frames();
  void put_name(const core::RunUid& run, std::int64_t kind, const SeriesName& name);
  static void note_extremes(Family& family, std::int64_t x, std::span<const double> values);
  bool is_known(std::int64_t run, std::int64_t kind, const SeriesName& name);
  std::int64_t next_order(std::int64_t run, std::int64_t kind);
  Family read_family(const FamilyKey& key, bool& there);
  void write(Family& family);
  void write_family(Family& family);
  SeriesRows pieces_of(const Family& family);
  void close_chunk(Family& family, const SeriesRows& chunk);
  void put_piece(Family& family, const SeriesRows& rows);
  void roll(const Family& family, std::size_t column, std::span<const SeriesRows> chunks);
  void forget_run(std::int64_t id);
  /// Of (id, uid) rows, the first whose run is not spared; nullopt: there is none.
  std::optional<std::int64_t> first_unspared(StoreStatement& rows) const;
  bool forget_kind(FamilyKind kind);
  bool forget_histograms();
  void forget_what_rests();
  struct AgingFamily;
  std::vector<AgingFamily> aging_families(std::size_t most);
  bool drop_old_of(AgingFamily& family, const KeepAges& keep, std::int64_t now, std::size_t& left);
  bool drop_chunks(AgingFamily& family, double before, std::size_t& left);
  void close_open_rows(AgingFamily& family, double before);
  void drop_blocks(AgingFamily& family, std::size_t part, double before, std::size_t& left);
  void keep_aged(const AgingFamily& family);
  std::int64_t rows_of_chunk(std::int64_t family, std::int64_t x0);

  std::unique_ptr<StoreLock> lock_;
  std::unique_ptr<StoreDatabase> database_;
  bool open_ = false;  // a transaction is
  std::set<core::RunUid> changed_;
  std::set<std::string> spared_;
  std::map<core::RunUid, KnownRun> runs_;
  std::map<SegmentKey, std::int64_t> segments_;
  std::map<std::pair<std::int64_t, std::uint16_t>, std::int64_t> sequences_;
  std::map<std::pair<std::int64_t, std::uint16_t>, HeardFrames> heard_frames_;
  std::vector<std::pair<std::int64_t, std::uint16_t>> fresh_frames_;  // not written yet
  std::unordered_map<FamilyKey, Family, HashOfKey> families_;
  std::vector<Family*> dirty_;  // with rows that wait
  WaitingRows waiting_;         // these
  SeriesRows fresh_;            // of the family that is written
  std::string bytes_;           // what is written of it
  // Rows of a frame are of one run and one segment.
  const core::RunUid* latest_uid_ = nullptr;
  KnownRun* latest_run_ = nullptr;
  const SegmentKey* latest_key_ = nullptr;
  std::int64_t latest_segment_ = 0;
  std::unordered_map<std::uint64_t, std::uint64_t>
      names_;  // what was said of a name last, as hashes
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t>
      orders_;                                                         // the next, by run and kind
  std::map<std::pair<std::int64_t, std::int64_t>, ServedSpan> links_;  // run and node
  std::int64_t turn_ = 0;
  std::uint64_t refused_ = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> bad_chunks_;  // family and x0: met by ageing
  std::int64_t aged_to_ = 0;  // the family that was looked at last
  std::unique_ptr<Statements> do_;
};

}  // namespace tocsin::insights
