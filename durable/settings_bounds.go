package durable

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// Bounds of [Settings]. An engine that got more could refuse the command, which
// no workflow code can catch; so nothing outside leaves this package unnoticed.
const (
	MaxTimeout        = 30 * 24 * time.Hour
	MinHeartbeat      = 100 * time.Millisecond
	MaxBackoffSetting = 24 * time.Hour
	MaxAttempts       = 1000
	MaxCoefficient    = 100.0
	MaxNeverRetry     = 100
	MaxQueueName      = 1000
	MaxPriority       = 1000
	MaxFairnessKey    = 64
	MinFairnessWeight = 0.001
	MaxFairnessWeight = 1000.0
)

// reservedQueues is the prefix that the server keeps to itself.
const reservedQueues = "/_sys/"

var codePattern = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,99}$`)

// Problem is one field of [Settings] that makes no sense: "attempts is 0: give 1
// to 1000".
type Problem struct {
	// Field is the name in Go, such as StartToClose.
	Field string
	// Value is what was given.
	Value any
	// Bound says what to give.
	Bound string
}

// Setting is the field's name under x-temporal, such as start_to_close_ms.
func (p Problem) Setting() string { return settingOf(p.Field) }

// Text writes the problem under a name of the field.
func (p Problem) Text(field string) string {
	value := p.Value
	if d, ok := value.(time.Duration); ok && strings.HasSuffix(field, "_ms") {
		value = d.Milliseconds()
	}
	if text, ok := value.(string); ok {
		value = quoted(text)
	}
	return fmt.Sprintf("%s is %v: %s", field, value, p.Bound)
}

const longestShown = 40

// quoted shows a text that somebody gave, however long it is.
func quoted(text string) string {
	if len(text) > longestShown {
		return fmt.Sprintf("a text of %d bytes", len(text))
	}
	return fmt.Sprintf("%q", text)
}

// Problems lists what makes no sense for a module of the class, in the order of
// the fields; none if all does.
func (s Settings) Problems(class Class) []Problem {
	found := &problems{}
	found.duration("StartToClose", s.StartToClose, time.Millisecond, MaxTimeout)
	found.duration("ScheduleToStart", s.ScheduleToStart, time.Millisecond, MaxTimeout)
	found.duration("ScheduleToClose", s.ScheduleToClose, time.Millisecond, MaxTimeout)
	found.duration("Heartbeat", s.Heartbeat, MinHeartbeat, MaxTimeout)
	found.whole("Attempts", s.Attempts, MaxAttempts)
	found.duration("Backoff", s.Backoff, time.Millisecond, MaxBackoffSetting)
	found.duration("MaxBackoff", s.MaxBackoff, time.Millisecond, MaxBackoffSetting)
	found.number("BackoffCoefficient", s.BackoffCoefficient, 1, MaxCoefficient)
	found.codes(s.NeverRetry)
	found.queue(s.TaskQueue)
	found.whole("Priority", s.Priority, MaxPriority)
	if len(s.FairnessKey) > MaxFairnessKey || !utf8.ValidString(s.FairnessKey) {
		found.add("FairnessKey", s.FairnessKey, fmt.Sprintf("give UTF-8 of at most %d bytes", MaxFairnessKey))
	}
	found.number("FairnessWeight", s.FairnessWeight, MinFairnessWeight, MaxFairnessWeight)
	if len(found.list) == 0 {
		found.together(s)
		found.forClass(s, class)
	}
	return found.list
}

type problems struct{ list []Problem }

func (p *problems) add(field string, value any, bound string) {
	p.list = append(p.list, Problem{Field: field, Value: value, Bound: bound})
}

func (p *problems) duration(field string, value, low, high time.Duration) {
	if value != 0 && (value < low || value > high) {
		p.add(field, value, fmt.Sprintf("give %v to %v", low, high))
	}
}

func (p *problems) whole(field string, value, high int) {
	if value < 0 || value > high {
		p.add(field, value, fmt.Sprintf("give 1 to %d", high))
	}
}

func (p *problems) number(field string, value, low, high float64) {
	if value != 0 && !(value >= low && value <= high) { // so that NaN is out of bounds
		p.add(field, value, fmt.Sprintf("give %v to %v", low, high))
	}
}

func (p *problems) codes(list []apcore.Code) {
	if len(list) > MaxNeverRetry {
		p.add("NeverRetry", len(list), fmt.Sprintf("give at most %d codes", MaxNeverRetry))
		return
	}
	for _, code := range list {
		if !codePattern.MatchString(string(code)) {
			p.add("NeverRetry", string(code), "give error codes such as ACME_BUSY")
			return
		}
	}
}

func (p *problems) queue(name string) {
	if len(name) > MaxQueueName || !utf8.ValidString(name) || strings.HasPrefix(name, reservedQueues) {
		p.add("TaskQueue", name, fmt.Sprintf("give UTF-8 of at most %d bytes that does not begin with %s", MaxQueueName, reservedQueues))
	}
}

// together finds fields that contradict each other.
func (p *problems) together(s Settings) {
	if s.ScheduleToClose > 0 && s.StartToClose > s.ScheduleToClose {
		p.add("StartToClose", s.StartToClose, fmt.Sprintf("one attempt cannot be longer than all together, which are given %v", s.ScheduleToClose))
	}
	if s.ScheduleToClose > 0 && s.ScheduleToStart > s.ScheduleToClose {
		p.add("ScheduleToStart", s.ScheduleToStart, fmt.Sprintf("the wait cannot be longer than everything together, which is given %v", s.ScheduleToClose))
	}
	if s.MaxBackoff > 0 && s.Backoff > s.MaxBackoff {
		p.add("Backoff", s.Backoff, fmt.Sprintf("the first wait cannot be longer than the longest, which is %v", s.MaxBackoff))
	}
	if s.FairnessWeight > 0 && s.FairnessKey == "" {
		p.add("FairnessWeight", s.FairnessWeight, "a weight needs a fairness key")
	}
}

// forClass finds what a module of the class cannot have.
func (p *problems) forClass(s Settings, class Class) {
	switch s.Execution {
	case "", ExecutionActivity:
	case ExecutionLocal:
		p.local(s, class)
	default:
		p.add("Execution", string(s.Execution), `give "activity" or "local"`)
	}
}

func (p *problems) local(s Settings, class Class) {
	if !class.Repeats() {
		p.add("Execution", string(s.Execution), `a local unit may run twice, so it is for modules that are readonly or idempotent: give "activity"`)
	}
	for _, other := range []struct {
		field string
		set   bool
	}{
		{"TaskQueue", s.TaskQueue != ""}, {"Heartbeat", s.Heartbeat != 0}, {"ScheduleToStart", s.ScheduleToStart != 0},
		{"Priority", s.Priority != 0}, {"FairnessKey", s.FairnessKey != ""},
	} {
		if other.set {
			p.add("Execution", string(s.Execution), "a local unit has no "+settingOf(other.field)+" of its own: leave one of the two out")
			return
		}
	}
}
