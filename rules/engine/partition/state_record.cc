#include "rules/engine/partition/state_record.h"

#include <cstring>

#include "rules/contract/layout.h"
#include "rules/engine/partition/partition.h"

namespace tocsin::rules {
namespace {

constexpr std::uint32_t kVersion = 3;
constexpr std::size_t kHeadBytes = 4 + 8 + 8 + 8 + 4 + 4;

template <typename A>
void io_head(A& a, RecordHead& h) {
  io_all(a, h.version, h.layout, h.generation, h.checksum, h.chunk, h.chunks);
}

// Of the head's other fields and the bytes.
std::uint64_t checksum_of(RecordHead head, std::string_view bytes) {
  head.checksum = core::name_hash(bytes);
  std::string text;
  Writer writer(text);
  io_head(writer, head);
  return core::name_hash(text);
}

}  // namespace

std::string part_key(const RunId& id, std::uint32_t life, const PartId& part) {
  return "run/" + core::to_text(id.uid) + "/" + std::to_string(id.shard) + "/" +
         std::to_string(life) + "/" + static_cast<char>(part.kind) + std::to_string(part.roster) +
         "." + std::to_string(part.range);
}

std::string chunk_key(std::string_view part, std::uint8_t slot, std::uint32_t chunk) {
  return std::string(part) + (slot == 0 ? "/a/" : "/b/") + std::to_string(chunk);
}

std::string log_key(std::uint64_t number) {
  std::string digits = std::to_string(number);
  return "log/" + std::string(20 - digits.size(), '0') + digits;
}

std::uint64_t state_layout() {
  static const std::uint64_t kLayout = [] {
    LayoutArchive archive;
    Run run;
    io(archive, run);
    Worker worker;
    io(archive, worker);
    NameTable::Entry name;
    io(archive, name);
    Roster roster;
    roster.blocks.resize(1);
    io_roster_head(archive, roster);
    io_roster_slots(archive, roster, 0, 0);
    Entry entry;
    io(archive, entry);
    Index index;
    io(archive, index);
    return core::name_hash(archive.text());
  }();
  return kLayout;
}

std::string seal(std::string_view bytes, std::uint64_t generation, std::uint32_t chunk,
                 std::uint32_t chunks) {
  RecordHead head{kVersion, state_layout(), generation, 0, chunk, chunks};
  head.checksum = checksum_of(head, bytes);
  std::string out;
  out.reserve(kHeadBytes + bytes.size());
  Writer writer(out);
  io_head(writer, head);
  out += bytes;
  return out;
}

core::Result<RecordHead> unseal(std::string_view& record) {
  RecordHead head;
  if (record.size() >= sizeof head.version) {
    std::memcpy(&head.version, record.data(), sizeof head.version);
    if (head.version != kVersion) {
      return damaged("state version " + std::to_string(head.version) + " is not known here");
    }
  }
  if (record.size() < kHeadBytes) return damaged("a state record is shorter than its head");
  Loader loader(record);
  io_head(loader, head);
  if (head.layout != state_layout()) {
    return damaged("a state record has another layout than this program's");
  }
  record.remove_prefix(kHeadBytes);
  if (checksum_of(head, record) != head.checksum) return damaged("a state record is damaged");
  return head;
}

}  // namespace tocsin::rules
