package temporal_test

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
	"github.com/apcore-temporal/apcore-temporal/testsuite"
)

// storeModel is what the store of several processes has to look like.
type storeModel struct {
	order   []string
	records map[string]apcore.TaskInfo
	writer  map[string]int // of the stored record
}

// save returns whether the save takes effect.
func (m *storeModel) save(writer int, info apcore.TaskInfo) bool {
	stored, known := m.records[info.TaskID]
	resubmission := info.Status == apcore.TaskPending && info.RetryCount == 0
	if known && stored.Status.Terminal() && stored.Status != info.Status && !resubmission && m.writer[info.TaskID] != writer {
		return false
	}
	if !known {
		m.order = append(m.order, info.TaskID)
	}
	same := known && wireOf(stored) == wireOf(info)
	m.records[info.TaskID] = info
	if !same || !stored.Status.Terminal() { // saving the same end again writes nothing
		m.writer[info.TaskID] = writer
	}
	return true
}

func wireOf(info apcore.TaskInfo) string {
	text, err := apcore.EncodeJSON(info)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func (m *storeModel) remove(id string) {
	delete(m.records, id)
	delete(m.writer, id)
	m.order = slices.DeleteFunc(m.order, func(other string) bool { return other == id })
}

func (m *storeModel) list(status *apcore.TaskStatus) []string {
	ids := []string{}
	for _, id := range m.order {
		if status == nil || m.records[id].Status == *status {
			ids = append(ids, id)
		}
	}
	return ids
}

// Target 38: over any sequence of operations from four instances, Get, Save and
// Delete agree with the model at once, from whichever instance, and the lists of
// all come to agree with it.
func TestTaskStoreModel(t *testing.T) {
	c := newClerk(t, fileServer(t, testsuite.ServerOptions{}))
	statuses := []apcore.TaskStatus{apcore.TaskPending, apcore.TaskRunning, apcore.TaskCompleted, apcore.TaskFailed, apcore.TaskCancelled}
	few(t, 25)
	rapid.Check(t, func(rt *rapid.T) {
		name := uuid.NewString()
		stores := make([]*temporal.TaskStore, 4)
		for i := range stores {
			stores[i] = c.store(t, name)
		}
		model := &storeModel{records: map[string]apcore.TaskInfo{}, writer: map[string]int{}}
		for range rapid.IntRange(5, 25).Draw(rt, "operations") {
			who := rapid.IntRange(0, len(stores)-1).Draw(rt, "who")
			id := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "id")
			switch rapid.IntRange(0, 5).Draw(rt, "operation") {
			case 0:
				model.remove(id)
				if err := stores[who].Delete(t.Context(), id); err != nil {
					rt.Fatalf("delete %s: %v", id, err)
				}
			default:
				status := rapid.SampledFrom(statuses).Draw(rt, "status")
				info := endedTask(id, status)
				if !status.Terminal() {
					info.CompletedAt = nil
				}
				if status == apcore.TaskPending {
					info.StartedAt = nil
				}
				err := stores[who].Save(t.Context(), info)
				if effective := model.save(who, info); effective != (err == nil) || !effective && !errors.Is(err, durable.CodeTaskEnded) {
					rt.Fatalf("instance %d saves %s of %s: %v, want effect %t", who, status, id, err, effective)
				}
			}
			reader := rapid.IntRange(0, len(stores)-1).Draw(rt, "reader")
			got, err := stores[reader].Get(t.Context(), id)
			want, known := model.records[id]
			if err != nil || (got != nil) != known || known && wireOf(*got) != wireOf(want) {
				rt.Fatalf("instance %d reads %s: %+v, %v, want %+v", reader, id, got, err, want)
			}
		}
		for i, store := range stores {
			eventually(rt, func() string {
				infos, err := store.List(t.Context(), nil)
				if want := model.list(nil); err != nil || !slices.Equal(idsOf(infos), want) {
					return fmt.Sprintf("instance %d lists %v, %v, want %v", i, idsOf(infos), err, want)
				}
				return ""
			})
		}
	})
}

// few bounds the checks of a property that takes a server, unless told otherwise.
func few(t *testing.T, checks int) {
	t.Helper()
	checksFlag := flag.Lookup("rapid.checks")
	if old := checksFlag.Value.String(); old == checksFlag.DefValue {
		must(t, checksFlag.Value.Set(strconv.Itoa(checks)))
		t.Cleanup(func() { must(t, checksFlag.Value.Set(old)) })
	}
}

// eventually polls until what returns nothing to complain about.
func eventually(t rapid.TB, what func() string) {
	t.Helper()
	complaint := ""
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if complaint = what(); complaint == "" {
			return
		}
	}
	t.Fatal(complaint)
}

// An instance lists what it has saved itself, at once and in order, while others
// write too; order is stable over overwrites and pages.
func TestOwnWritesAreListed(t *testing.T) {
	t.Parallel()
	c := newClerk(t, fileServer(t, testsuite.ServerOptions{}))
	name := uuid.NewString()
	var group sync.WaitGroup
	for writer := range 4 {
		group.Go(func() {
			store := c.store(t, name)
			var own []string
			for i := range 12 {
				id := fmt.Sprintf("%d-%d", 9-writer, 99-i)
				own = append(own, id)
				if err := errors.Join(store.Save(t.Context(), pendingTask(id)), store.Save(t.Context(), endedTask(id, apcore.TaskCompleted))); err != nil {
					t.Error(err)
				}
				infos, err := store.List(t.Context(), nil)
				listed := slices.DeleteFunc(idsOf(infos), func(id string) bool { return id[0] != own[0][0] })
				if err != nil || !slices.Equal(listed, own) {
					t.Errorf("writer %d lists %v of its own, %v, want %v", writer, listed, err, own)
				}
			}
		})
	}
	group.Wait()
	first, second := c.store(t, name), c.store(t, name)
	var a, b []apcore.TaskInfo
	eventually(t, func() string {
		var errA, errB error
		a, errA = first.List(t.Context(), nil)
		b, errB = second.List(t.Context(), nil)
		if errA != nil || errB != nil || len(a) != 48 || len(b) != 48 {
			return fmt.Sprintf("%d and %d records, %v, %v", len(a), len(b), errA, errB)
		}
		return ""
	})
	if !slices.Equal(idsOf(a), idsOf(b)) {
		t.Errorf("two instances list\n%v\n%v", idsOf(a), idsOf(b))
	}
	var streamed []durable.TaskRecord
	for page, err := range first.Pages(t.Context(), nil) {
		must(t, err)
		streamed = append(streamed, page...)
	}
	slices.SortFunc(streamed, func(a, b durable.TaskRecord) int { return cmp.Compare(a.Place, b.Place) })
	for i := range streamed {
		if streamed[i].Task.TaskID != a[i].TaskID {
			t.Errorf("place %d: streamed %s, listed %s", i, streamed[i].Task.TaskID, a[i].TaskID)
		}
	}
	if n, err := first.Count(t.Context(), new(apcore.TaskCompleted)); n != 48 || err != nil {
		t.Errorf("counted %d, %v", n, err)
	}
}
