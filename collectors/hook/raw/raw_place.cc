#include "collectors/hook/raw/raw_place.h"

#include <array>
#include <cstdio>
#include <utility>

#include "core/topics.h"

namespace tocsin::hook {
namespace {

using std::chrono::milliseconds;

constexpr auto kPatience = milliseconds(100);  // between two looks at `stop`

/// Records of the topic `tensors`, until they are delivered.
class TensorTopic {
 public:
  TensorTopic(std::unique_ptr<core::RecordPublisher> publisher, std::string key)
      : publisher_(std::move(publisher)), key_(std::move(key)) {}

  core::Status publish(std::span<const std::byte> frame, std::int64_t time,
                       const RawPlace::Stop& stop) {
    core::OutRecord record;
    record.topic = core::topic::kTensors;
    record.key = key_;
    record.value.emplace(reinterpret_cast<const char*>(frame.data()), frame.size());
    record.timestamp = time;
    while (true) {
      auto taken = publisher_->publish(record);
      if (taken || taken.error().code != core::Code::resource_exhausted) return taken;
      if (stop()) return core::Error{core::Code::cancelled, taken.error().message};
      (void)publisher_->flush(kPatience);  // what is full may empty
    }
  }

  core::Status deliver(const RawPlace::Stop& stop) {
    while (true) {
      auto delivered = publisher_->flush(kPatience);
      if (delivered || delivered.error().code != core::Code::deadline_exceeded) return delivered;
      if (stop()) return core::Error{core::Code::cancelled, delivered.error().message};
    }
  }

 private:
  std::unique_ptr<core::RecordPublisher> publisher_;
  std::string key_;
};

class RawTopic final : public RawPlace {
 public:
  RawTopic(TensorTopic topic, RawFrames frames)
      : topic_(std::move(topic)), frames_(std::move(frames)) {}

  core::Status put(const std::vector<RawTensor>& tensors, const Stop& stop) override {
    for (const RawTensor& tensor : tensors) {
      const auto take = [&](std::span<const std::byte> frame) {
        return topic_.publish(frame, tensor.header.time, stop);
      };
      if (auto sent = frames_.chunks(tensor, take); !sent) return sent;
    }
    return topic_.deliver(stop);
  }

 private:
  TensorTopic topic_;
  RawFrames frames_;
};

class RawObjects final : public RawPlace {
 public:
  RawObjects(TensorTopic topic, RawFrames frames, std::unique_ptr<BlobStore> store,
             std::string folder)
      : topic_(std::move(topic)),
        frames_(std::move(frames)),
        store_(std::move(store)),
        folder_(std::move(folder)) {}

  core::Status put(const std::vector<RawTensor>& tensors, const Stop& stop) override {
    const std::string key = key_of(tensors.front());
    if (key != written_) {  // else the object is there, and only its references are not
      if (auto written = write(tensors, key, stop); !written) return written;
      written_ = key;
    }
    const std::string uri = store_->uri(key);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const auto take = [&](std::span<const std::byte> frame) {
        return topic_.publish(frame, tensors[i].header.time, stop);
      };
      const auto& [offset, bytes] = ranges_[i];
      if (auto sent = frames_.reference(tensors[i], offset, bytes, uri, take); !sent) return sent;
    }
    auto delivered = topic_.deliver(stop);
    if (delivered) ++number_;
    return delivered;
  }

 private:
  [[nodiscard]] std::string key_of(const RawTensor& first) const {
    std::array<char, 64> name{};
    std::snprintf(name.data(), name.size(), "-%09lld-%016llx-%06llu.tcsn",
                  static_cast<long long>(first.header.step),
                  static_cast<unsigned long long>(first.header.incarnation),
                  static_cast<unsigned long long>(number_));
    return folder_ + "/" + std::string(core::to_string(first.header.mode)) + name.data();
  }

  core::Status write(const std::vector<RawTensor>& tensors, const std::string& key,
                     const Stop& stop) {
    std::vector<std::byte> object;
    ranges_.clear();
    for (const RawTensor& tensor : tensors) {
      const std::size_t offset = object.size();
      const auto take = [&](std::span<const std::byte> frame) {
        object.insert(object.end(), frame.begin(), frame.end());
        return core::ok();
      };
      if (auto made = frames_.chunks(tensor, take); !made) return made;
      ranges_.emplace_back(offset, object.size() - offset);
    }
    return store_->put(key, object, stop);
  }

  TensorTopic topic_;
  RawFrames frames_;
  std::unique_ptr<BlobStore> store_;
  const std::string folder_;
  std::string written_;                                          // key of the newest object
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges_;  // of its tensors: offset, bytes
  std::uint64_t number_ = 0;
};

}  // namespace

std::unique_ptr<RawPlace> raw_topic(std::unique_ptr<core::RecordPublisher> publisher,
                                    RawFrames frames, std::string key) {
  return std::make_unique<RawTopic>(TensorTopic(std::move(publisher), std::move(key)),
                                    std::move(frames));
}

std::unique_ptr<RawPlace> raw_objects(std::unique_ptr<core::RecordPublisher> publisher,
                                      RawFrames frames, std::string key,
                                      std::unique_ptr<BlobStore> store, std::string folder) {
  return std::make_unique<RawObjects>(TensorTopic(std::move(publisher), std::move(key)),
                                      std::move(frames), std::move(store), std::move(folder));
}

}  // namespace tocsin::hook
