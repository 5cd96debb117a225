#include "ingest/kafka/leaders.h"

#include <algorithm>

namespace tocsin::ingest {

bool leaders_answer(rd_kafka_t* client, std::span<const TopicSpec> topics,
                    std::chrono::milliseconds timeout) {
  const Kafka<rd_kafka_topic_partition_list_t> list(rd_kafka_topic_partition_list_new(8));
  for (const TopicSpec& topic : topics) {
    for (std::int32_t partition = 0; partition < topic.partitions; ++partition) {
      rd_kafka_topic_partition_list_add(list.get(), topic.full_name.c_str(), partition)->offset =
          RD_KAFKA_OFFSET_END;
    }
  }
  // Where each partition ends only its leader says, and only with a log at hand.
  const auto error =
      rd_kafka_offsets_for_times(client, list.get(), static_cast<int>(timeout.count()));
  const auto fine = [](rd_kafka_resp_err_t code) {
    return code == RD_KAFKA_RESP_ERR_NO_ERROR || kafka_code(code) == core::Code::permission_denied;
  };
  const std::span partitions(list->elems, static_cast<std::size_t>(list->cnt));
  return fine(error) && std::all_of(partitions.begin(), partitions.end(),
                                    [&](const auto& one) { return fine(one.err); });
}

}  // namespace tocsin::ingest
