// SPDX-License-Identifier: MIT
#include "server/scheduler/scheduler.h"

#include "server/scheduler/loop.h"

namespace snapkv::server {

Scheduler::Scheduler(std::shared_ptr<const Model> model, const SchedulerOptions& options)
    : loop_(std::make_unique<Loop>(std::move(model), options)) {}
Scheduler::~Scheduler() = default;

const Model& Scheduler::model() const { return *loop_->model(); }
const SchedulerOptions& Scheduler::options() const { return loop_->options(); }

std::shared_ptr<Generation> Scheduler::submit(Request request) {
  return loop_->submit(std::move(request), {}, {});
}

PromptFit Scheduler::fit(Request request) const { return loop_->fit(std::move(request)); }

std::shared_ptr<Generation> Scheduler::make_snapshot(Request request, const std::string& path,
                                                     const std::string& notes) {
  return loop_->submit(std::move(request), path, notes);
}

DocumentStore& Scheduler::documents() { return loop_->documents(); }

void Scheduler::drain() { loop_->drain(); }
bool Scheduler::draining() const { return loop_->draining(); }
bool Scheduler::idle() const { return loop_->idle(); }

std::vector<SlotInfo> Scheduler::slots() const { return loop_->slots(); }
void Scheduler::save_slot(int64_t id, const std::string& path) { loop_->save_slot(id, path); }
int64_t Scheduler::restore_slot(const std::string& path) { return loop_->restore_slot(path); }
void Scheduler::erase_slot(int64_t id) { loop_->erase_slot(id); }

SchedulerStats Scheduler::stats() const { return loop_->stats(); }

}  // namespace snapkv::server
