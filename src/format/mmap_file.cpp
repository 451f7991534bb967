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
#include <utility>

#include "base/error.h"
#include "base/huge_pages.h"

namespace snapkv {
namespace {

class FileDescriptor {
 public:
  // O_NONBLOCK: opening a FIFO must not wait for its writer; it is refused right after.
  explicit FileDescriptor(const std::string& path)
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (fd_ < 0) fail(ErrorCode::kRuntime, "cannot open '{}': {}", path, std::strerror(errno));
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() { ::close(fd_); }
  int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

MmapFile::MmapFile(const std::string& path) {
  const FileDescriptor fd(path);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) {
    fail(ErrorCode::kRuntime, "cannot read '{}': {}", path, std::strerror(errno));
  }
  if (S_ISDIR(info.st_mode)) {
    fail(ErrorCode::kRuntime, "cannot read '{}': it is a directory, a file is expected", path);
  }
  if (!S_ISREG(info.st_mode)) {
    fail(ErrorCode::kRuntime, "cannot read '{}': it is not a regular file", path);
  }
  if (info.st_size == 0) fail(ErrorCode::kBadModel, "'{}': the file is empty", path);
  const auto size = static_cast<size_t>(info.st_size);
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (address == MAP_FAILED) {
    fail(ErrorCode::kRuntime, "cannot map '{}' ({} bytes) into memory: {}", path, size,
         std::strerror(errno));
  }
  data_ = static_cast<std::byte*>(address);
  size_ = size;
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
  if (data_ != nullptr) ::munmap(data_, size_);
}

void MmapFile::will_need(size_t offset, size_t length) const {
  advise(offset, length, MADV_WILLNEED, Rounding::kOutward);
}

void MmapFile::dont_need(size_t offset, size_t length) const {
  const std::lock_guard lock(state_->mutex);
  if (!state_->moved) advise(offset, length, MADV_DONTNEED, Rounding::kInward);
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
  // takes the place of the file's pages in one step
  if (::mremap(copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, old) == MAP_FAILED) {
    ::munmap(copy, bytes);
    return std::nullopt;
  }
  state_->moved = true;
  return bytes;
}

void MmapFile::advise(size_t offset, size_t length, int advice, Rounding rounding) const {
  if (offset >= size_) return;
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  size_t begin = offset;
  size_t end = offset + std::min(length, size_ - offset);
  if (rounding == Rounding::kOutward || begin == 0) {
    begin = begin / page * page;
  } else {
    begin = (begin + page - 1) / page * page;
  }
  // The last page belongs to this file alone, so the file's end counts as a page's end.
  if (rounding == Rounding::kInward && end != size_) end = end / page * page;
  if (begin < end) ::madvise(data_ + begin, end - begin, advice);
}

}  // namespace snapkv
