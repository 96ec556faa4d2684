package temporal

import (
	"context"
	"sync"
	"time"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
)

// taskOverlay holds what one instance has written and visibility may not show
// yet. It is bounded in number and age: the oldest entries go first, by when even
// a slow visibility has them.
type taskOverlay struct {
	mu      sync.Mutex
	entries map[string]*overlayEntry
	oldest  []string // ids in order of their first writing; may name entries that are gone
}

type overlayEntry struct {
	head    durable.TaskRecord
	checked time.Time // when the server was last known to agree
	// started says that only the start of a task is known here: whatever the server
	// lists is newer, and its place has to be asked.
	started bool
}

const (
	maxOverlay  = 10000
	overlayKeep = 5 * time.Minute
	// overlayGrace is how long an entry may be missing in visibility before the
	// server is asked whether the record is still there.
	overlayGrace = 2 * time.Second
)

func newTaskOverlay() *taskOverlay { return &taskOverlay{entries: map[string]*overlayEntry{}} }

func (o *taskOverlay) put(head *durable.TaskRecord) {
	o.set(head.Task.TaskID, &overlayEntry{head: *head, checked: time.Now()})
}

// start notes a task that was started.
func (o *taskOverlay) start(record *durable.TaskRecord) {
	if head, err := record.Head(); err == nil {
		o.set(head.Task.TaskID, &overlayEntry{head: head, checked: time.Now(), started: true})
	}
}

func (o *taskOverlay) set(id string, entry *overlayEntry) {
	o.mu.Lock()
	defer o.mu.Unlock()
	old, known := o.entries[id]
	if known && !entry.started && old.head.Newer(&entry.head) {
		return // two writes at once: the later one has been noted
	}
	if !known {
		o.oldest = append(o.oldest, id)
	}
	o.entries[id] = entry
	for len(o.oldest) > 0 && o.spare(o.entries[o.oldest[0]]) {
		delete(o.entries, o.oldest[0])
		o.oldest = o.oldest[1:]
	}
}

// spare reports whether the oldest entry may go; nil has gone before.
func (o *taskOverlay) spare(entry *overlayEntry) bool {
	return entry == nil || len(o.oldest) > maxOverlay || time.Since(entry.checked) > overlayKeep
}

// drop forgets an entry unless it has changed.
func (o *taskOverlay) drop(id string, entry *overlayEntry) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.entries[id] == entry {
		delete(o.entries, id)
	}
}

// snapshot copies what is there now.
func (o *taskOverlay) snapshot() map[string]*overlayEntry {
	o.mu.Lock()
	defer o.mu.Unlock()
	entries := make(map[string]*overlayEntry, len(o.entries))
	for id, entry := range o.entries {
		entries[id] = entry
	}
	return entries
}

// laid puts the overlay over what visibility has shown. wanted says which records
// the list was asked for. The overlay was taken before visibility was asked, so
// that a record written meanwhile cannot hide in between.
func (s *TaskStore) laid(ctx context.Context, shown map[string]*foundTask, overlay map[string]*overlayEntry, wanted func(*apcore.TaskInfo) bool) error {
	for id, entry := range overlay {
		row := shown[id]
		switch {
		case row != nil && (row.record.Newer(&entry.head) || !entry.head.Deleted && !entry.head.Newer(&row.record)):
			s.overlay.drop(id, entry) // visibility has caught up
		case row == nil && entry.started:
			if err := s.recheck(ctx, id, shown, wanted); err != nil {
				return err
			}
			if found := shown[id]; found != nil {
				s.overlay.put(&found.record)
			}
		case entry.head.Deleted:
			delete(shown, id)
			if row == nil && time.Since(entry.checked) > overlayGrace {
				s.overlay.drop(id, entry)
			}
		case row == nil && time.Since(entry.checked) > overlayGrace && wanted(&entry.head.Task):
			if err := s.recheck(ctx, id, shown, wanted); err != nil {
				return err
			}
			s.overlay.drop(id, entry)
		case wanted(&entry.head.Task):
			shown[id] = &foundTask{record: entry.head}
		default:
			delete(shown, id) // visibility still shows what it was before
		}
	}
	return nil
}

// recheck asks the server for a record that visibility should show by now.
func (s *TaskStore) recheck(ctx context.Context, id string, shown map[string]*foundTask, wanted func(*apcore.TaskInfo) bool) error {
	found, err := s.describe(ctx, id)
	if err == nil && found != nil && !found.record.Deleted && wanted(&found.record.Task) {
		shown[id] = found
	}
	return err
}
