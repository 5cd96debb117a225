// Bytes of snapshots: one io() function per structure both writes and reads it, so that the two
// directions cannot drift apart. Little-endian host order, no padding between fields; the padding
// within a structure that is written as it lies in memory is zero.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "rules/contract/whole.h"

namespace tocsin::rules {

#if defined(__has_builtin)
#if __has_builtin(__builtin_clear_padding)
#define TOCSIN_CLEARS_PADDING 1
#endif
#endif

/// Nothing where the compiler cannot (Clang before 20). Of a structure that is larger than its buffer of
/// 256 bytes, GCC 12 clears data: such a one may have no padding.
template <typename T>
void clear_padding([[maybe_unused]] T& value) noexcept {
#if defined(TOCSIN_CLEARS_PADDING)
  if constexpr (sizeof(T) <= 256) {
    __builtin_clear_padding(&value);
  } else {
    static_assert(Whole<T>, "name its gaps");
  }
#endif
}

class Writer {
 public:
  static constexpr bool kReading = false;
  static constexpr bool kLayout = false;
  explicit Writer(std::string& out) : out_(out) {}
  void raw(const void* data, std::size_t size) {
    if (size == 0) return;  // an empty vector has no address
    out_.append(static_cast<const char*>(data), size);
  }
  /// As they lie in memory. What stood in their padding before belongs to nobody's snapshot.
  template <typename T>
  void flat(const T* items, std::size_t count) {
    if constexpr (std::is_scalar_v<T> || std::has_unique_object_representations_v<T>) {
      raw(items, count * sizeof(T));
    } else {
      const std::size_t from = out_.size();
      out_.resize(from + count * sizeof(T));
      for (std::size_t i = 0; i < count; ++i) {
        T item;
        std::memcpy(&item, items + i, sizeof item);
        clear_padding(item);
        std::memcpy(out_.data() + from + i * sizeof item, &item, sizeof item);
      }
    }
  }

 private:
  std::string& out_;
};

/// Reads what Writer wrote. Never past the end: after the first short read everything stays as it
/// was and ok() is false.
class Loader {
 public:
  static constexpr bool kReading = true;
  static constexpr bool kLayout = false;
  explicit Loader(std::string_view in) : in_(in) {}
  template <typename T>
  void flat(T* items, std::size_t count) {
    raw(items, count * sizeof(T));
  }
  void raw(void* data, std::size_t size) {
    if (size == 0) return;
    if (size > in_.size()) {
      ok_ = false;
      in_ = {};
      return;
    }
    std::memcpy(data, in_.data(), size);
    in_.remove_prefix(size);
  }
  /// A count of elements of at least `each` bytes; 0 and not ok when they cannot all be there.
  [[nodiscard]] std::size_t count(std::uint64_t wanted, std::size_t each) {
    if (wanted > in_.size() / (each == 0 ? 1 : each)) {
      ok_ = false;
      in_ = {};
      return 0;
    }
    return static_cast<std::size_t>(wanted);
  }
  void fail() noexcept {
    ok_ = false;
    in_ = {};
  }
  [[nodiscard]] bool ok() const noexcept { return ok_; }
  [[nodiscard]] std::size_t left() const noexcept { return in_.size(); }

 private:
  std::string_view in_;
  bool ok_ = true;
};

template <typename A, typename T>
requires std::is_trivially_copyable_v<T>
void io(A& archive, T& value) {
  if constexpr (A::kLayout) {
    archive.template leaf<T>();
  } else {
    archive.flat(&value, 1);
  }
}

/// As it lies in memory, with zeros where it has no value.
template <typename A, typename T>
requires std::is_trivially_copyable_v<std::optional<T>>
void io(A& archive, std::optional<T>& value) {
  if constexpr (A::kLayout) {
    archive.template leaf<std::optional<T>>();
  } else if constexpr (A::kReading) {
    archive.flat(&value, 1);
  } else {
    // By hand: of an optional that is made in zeros, its constructor need not leave the gaps zero.
    static_assert(sizeof(value) > sizeof(T), "the value, then whether there is one");
    std::array<std::byte, sizeof(value)> bytes{};
    if (value) {
      T item = *value;
      clear_padding(item);
      std::memcpy(bytes.data(), &item, sizeof item);
      bytes[sizeof item] = std::byte{1};
    }
    archive.raw(bytes.data(), bytes.size());
  }
}

template <typename A>
void io(A& archive, std::string& value);
template <typename A, typename T>
void io(A& archive, std::vector<T>& value);
template <typename A, typename K, typename V>
void io(A& archive, std::map<K, V>& value);
template <typename A, typename F, typename S>
requires(!std::is_trivially_copyable_v<std::pair<F, S>>) void io(A& archive,
                                                                 std::pair<F, S>& value) {
  io(archive, value.first);
  io(archive, value.second);
}

template <typename A, typename... T>
void io_all(A& archive, T&... values) {
  (io(archive, values), ...);
}

/// Writes the size, or reads it and checks that so many elements of `each` bytes can follow.
template <typename A>
std::size_t io_size(A& archive, std::size_t size, std::size_t each) {
  std::uint64_t count = size;
  archive.raw(&count, sizeof count);
  if constexpr (A::kReading) return archive.count(count, each);
  return size;
}

template <typename A>
void io(A& archive, std::string& value) {
  if constexpr (A::kLayout) return archive.open('s');
  const std::size_t size = io_size(archive, value.size(), 1);
  if constexpr (A::kReading) value.resize(size);
  archive.raw(value.data(), size);
}

template <typename A, typename T>
void io(A& archive, std::vector<T>& value) {
  constexpr bool kFlat = std::is_trivially_copyable_v<T>;
  if constexpr (A::kLayout) {
    archive.open('v');
    T item{};
    return io(archive, item);
  }
  const std::size_t size = io_size(archive, value.size(), kFlat ? sizeof(T) : 1);
  if constexpr (A::kReading) value.resize(size);
  if constexpr (kFlat) {
    archive.flat(value.data(), size);
  } else {
    for (T& item : value) io(archive, item);
  }
}

template <typename A, typename K, typename V>
void io(A& archive, std::map<K, V>& value) {
  if constexpr (A::kLayout) {
    archive.open('m');
    K key{};
    V item{};
    io(archive, key);
    return io(archive, item);
  }
  const std::size_t size = io_size(archive, value.size(), 1);
  if constexpr (A::kReading) {
    value.clear();
    for (std::size_t i = 0; i < size && archive.ok(); ++i) {
      K key{};
      io(archive, key);
      io(archive, value[key]);
    }
  } else {
    for (auto& [key, item] : value) {
      K copy = key;
      io(archive, copy);
      io(archive, item);
    }
  }
}

/// Elements from…to of a vector, as far as they exist; reading appends them.
template <typename A, typename T>
void io_slice(A& archive, std::vector<T>& value, std::size_t from, std::size_t to) {
  constexpr bool kFlat = std::is_trivially_copyable_v<T>;
  if constexpr (A::kLayout) return io(archive, value);
  const std::size_t end = std::min(to, value.size());
  const std::size_t size =
      io_size(archive, end > from ? end - from : 0, kFlat ? sizeof(T) : std::size_t{1});
  if constexpr (A::kReading) {
    from = value.size();
    value.resize(from + size);
  }
  if (size == 0) return;
  if constexpr (kFlat) {
    archive.flat(value.data() + from, size);
  } else {
    for (std::size_t i = 0; i < size; ++i) io(archive, value[from + i]);
  }
}

}  // namespace tocsin::rules
