// SPDX-License-Identifier: MIT
#include "format/mmap_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/buffer.h"
#include "base/error.h"
#include "base/huge_pages.h"

namespace snapkv {
namespace {

class FileDescriptor {
 public:
  // O_NONBLOCK: opening a FIFO must not wait for a writer; it is rejected right after.
  explicit FileDescriptor(const std::string& path)
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (fd_ < 0) fail(ErrorCode::kRuntime, "cannot open '{}': {}", path, std::strerror(errno));
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

struct stat status_of(int fd, const std::string& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) {
    fail(ErrorCode::kRuntime, "cannot read '{}': {}", path, std::strerror(errno));
  }
  return info;
}

int64_t modified_ns(const struct stat& info) {
  return int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
}

}  // namespace

uint64_t bytes_to_copy(const std::string& path, uint64_t most) {
  std::error_code error;  // ignored here: MmapFile reports why the file cannot be read
  const uint64_t bytes = std::filesystem::file_size(path, error);
  if (error) return 0;
  if (bytes > most) {
    fail(ErrorCode::kDoesNotFit, "a copy of '{}' takes {} MiB of memory, {} MiB are available",
         path, bytes >> 20, most >> 20);
  }
  return bytes;
}

MmapFile::State::~State() {
  if (fd >= 0) ::close(fd);
}

MmapFile::MmapFile(const std::string& path, FileAccess access) : state_(std::make_unique<State>()) {
  FileDescriptor fd(path);
  const struct stat info = status_of(fd.get(), path);
  if (S_ISDIR(info.st_mode)) {
    fail(ErrorCode::kRuntime, "cannot read '{}': it is a directory, a file is expected", path);
  }
  if (!S_ISREG(info.st_mode)) {
    fail(ErrorCode::kRuntime, "cannot read '{}': it is not a regular file", path);
  }
  if (info.st_size == 0) fail(ErrorCode::kBadModel, "'{}': the file is empty", path);
  size_ = info.st_size;
  state_->path = path;
  state_->modified_ns = modified_ns(info);
  if (access == FileAccess::copied) {
    copy(fd.get(), path);
  } else {
    map(fd.get(), path);
    state_->fd = fd.release();
  }
}

MmapFile::MmapFile(const LentFile& file) : state_(std::make_unique<State>()) {
  if (file.bytes.empty()) fail(ErrorCode::kBadModel, "'{}': there are no bytes", file.name);
  if (reinterpret_cast<uintptr_t>(file.bytes.data()) % Buffer::kAlignment != 0) {
    fail(ErrorCode::kUsage, "'{}': its bytes must begin at a multiple of {} to be read in place",
         file.name, Buffer::kAlignment);
  }
  data_ = const_cast<std::byte*>(file.bytes.data());  // never written to
  size_ = file.bytes.size();
  state_->path = file.name;
  state_->owner = file.owner;
  state_->is_lent = state_->in_memory = true;
}

void MmapFile::map(int fd, const std::string& path) {
  void* address = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, fd, 0);
  if (address == MAP_FAILED) {
    const bool no_room = errno == ENOMEM;
    fail(no_room ? ErrorCode::kDoesNotFit : ErrorCode::kRuntime,
         "cannot map '{}' ({} bytes) into memory: {}", path, size_, std::strerror(errno));
  }
  data_ = static_cast<std::byte*>(address);
  state_->range = MappedRange(data_, size_, state_->path.c_str());
}

void MmapFile::copy(int fd, const std::string& path) {
  void* address =
      ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) {
    fail(ErrorCode::kDoesNotFit, "no memory for a copy of '{}' ({} bytes): {}", path, size_,
         std::strerror(errno));
  }
  prefer_huge_pages(address, size_);
  state_->in_memory = true;
  auto* const data = static_cast<std::byte*>(address);
  size_t done = 0;
  int error = 0;
  while (done < size_ && error == 0) {
    constexpr size_t kMost = size_t{1} << 30;  // less than one call of read() may return
    const ssize_t n = ::pread(fd, data + done, std::min(kMost, size_ - done), done);
    if (n > 0) {
      done += n;
    } else if (n == 0) {
      break;  // the file has become shorter
    } else if (errno != EINTR) {
      error = errno;
    }
  }
  struct stat after {};
  if (error == 0 && ::fstat(fd, &after) != 0) error = errno;
  const bool changed = done < size_ || after.st_size != static_cast<off_t>(size_) ||
                       modified_ns(after) != state_->modified_ns;
  if (error != 0 || changed) {
    ::munmap(address, size_);
    if (error != 0) {
      fail(ErrorCode::kRuntime, "cannot read '{}': {}", path, std::strerror(error));
    }
    fail(ErrorCode::kBadModel, "'{}' changed while it was read", path);
  }
  ::mprotect(address, size_, PROT_READ);
  data_ = data;
}

MmapFile::MmapFile(MmapFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      state_(std::move(other.state_)) {}

MmapFile& MmapFile::operator=(MmapFile&& other) noexcept {
  MmapFile moved(std::move(other));
  std::swap(data_, moved.data_);
  std::swap(size_, moved.size_);
  std::swap(state_, moved.state_);
  return *this;
}

MmapFile::~MmapFile() {
  if (state_ != nullptr) state_->range = {};  // before the addresses may be reused
  if (data_ != nullptr && !state_->is_lent) ::munmap(data_, size_);
}

const char* const MmapFile::kWeightsAdvice =
    "load it again when it is complete, or read it into memory at the start (--weights copy)";

void MmapFile::check_unchanged(const char* advice) const {
  if (state_->fd < 0) return;
  const struct stat now = status_of(state_->fd, state_->path);
  if (now.st_size != static_cast<off_t>(size_)) {
    fail(ErrorCode::kBadModel,
         "'{}' has {} bytes now, {} when it was opened: what was read from it may be wrong; {}",
         state_->path, now.st_size, size_, advice);
  }
  if (modified_ns(now) != state_->modified_ns) {
    fail(ErrorCode::kBadModel,
         "'{}' was written to after it was opened: what was read from it may be wrong; {}",
         state_->path, advice);
  }
}

void MmapFile::will_need(size_t offset, size_t length) const {
  advise(offset, length, MADV_WILLNEED, Rounding::kOutward);
}

void MmapFile::dont_need(size_t offset, size_t length) const {
  const std::lock_guard lock(state_->mutex);
  if (!state_->in_memory) advise(offset, length, MADV_DONTNEED, Rounding::kInward);
}

void MmapFile::sequential(size_t offset, size_t length) const {
  advise(offset, length, MADV_SEQUENTIAL, Rounding::kOutward);
}

std::optional<size_t> MmapFile::move_to_huge_pages(size_t offset, size_t length) {
  const size_t page = huge_page_size();
  if (page == 0 || offset >= size_) return 0;
  const auto data = reinterpret_cast<uintptr_t>(data_);
  const auto round_up = [page](uintptr_t a) { return (a + page - 1) / page * page; };
  const uintptr_t begin = round_up(data + offset);
  const uintptr_t end = std::min(round_up(data + offset + std::min(length, size_ - offset)),
                                 (data + size_) / page * page);
  if (begin >= end) return 0;
  const size_t bytes = end - begin;
  void* const raw =
      ::mmap(nullptr, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) return std::nullopt;
  const uintptr_t first = reinterpret_cast<uintptr_t>(raw), fresh = round_up(first);
  if (fresh > first) ::munmap(raw, fresh - first);
  ::munmap(reinterpret_cast<void*>(fresh + bytes), first + page - fresh);
  void* const copy = reinterpret_cast<void*>(fresh);
  void* const old = reinterpret_cast<void*>(begin);
  prefer_huge_pages(copy, bytes);
  std::memcpy(copy, old, bytes);
  ::mprotect(copy, bytes, PROT_READ);
  const std::lock_guard lock(state_->mutex);
  // replaces the file's pages in one step
  if (::mremap(copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, old) == MAP_FAILED) {
    ::munmap(copy, bytes);
    return std::nullopt;
  }
  state_->in_memory = true;
  return bytes;
}

void MmapFile::advise(size_t offset, size_t length, int advice, Rounding rounding) const {
  if (offset >= size_) return;
  const size_t page = ::sysconf(_SC_PAGESIZE);
  size_t begin = offset;
  size_t end = offset + std::min(length, size_ - offset);
  if (rounding == Rounding::kOutward || begin == 0) {
    begin = begin / page * page;
  } else {
    begin = (begin + page - 1) / page * page;
  }
  // The last page contains no other data, so the file's end counts as the end of a page.
  if (rounding == Rounding::kInward && end != size_) end = end / page * page;
  if (begin < end) ::madvise(data_ + begin, end - begin, advice);
}

}  // namespace snapkv
