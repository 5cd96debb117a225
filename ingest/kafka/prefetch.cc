#include "ingest/kafka/prefetch.h"

#include <span>

#include "ingest/kafka/config.h"

namespace tocsin::ingest {

bool has_queue_backoff() noexcept {
  constexpr int kSince = 0x02020000;
  return rd_kafka_version() >= kSince;
}

void KafkaPrefetch::ask(rd_kafka_t* client, rd_kafka_topic_partition_list_t& partitions) {
  taken_ = 0;
  if (has_queue_backoff() || partitions.cnt == 0) return;
  for (auto& one : std::span(partitions.elems, static_cast<std::size_t>(partitions.cnt))) {
    one.offset = RD_KAFKA_OFFSET_END;
  }
  // No time to wait: the question is sent where the leaders are known, as they are of what is being
  // read, and the library throws the answer away.
  (void)rd_kafka_offsets_for_times(client, &partitions, 0);
}

}  // namespace tocsin::ingest
