package durable

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// settingNames maps the fields of [Settings] to their names under x-temporal, in
// the order of the fields.
var settingNames = [][2]string{
	{"StartToClose", "start_to_close_ms"},
	{"ScheduleToStart", "schedule_to_start_ms"},
	{"ScheduleToClose", "schedule_to_close_ms"},
	{"Heartbeat", "heartbeat_ms"},
	{"Attempts", "attempts"},
	{"Backoff", "backoff_ms"},
	{"MaxBackoff", "max_backoff_ms"},
	{"BackoffCoefficient", "backoff_coefficient"},
	{"NeverRetry", "never_retry"},
	{"TaskQueue", "task_queue"},
	{"Priority", "priority"},
	{"FairnessKey", "fairness_key"},
	{"FairnessWeight", "fairness_weight"},
	{"Execution", "execution"},
}

// SettingNames returns the keys that an x-temporal object may have.
func SettingNames() []string {
	names := make([]string, 0, len(settingNames))
	for _, pair := range settingNames {
		names = append(names, pair[1])
	}
	return names
}

func settingOf(field string) string {
	for _, pair := range settingNames {
		if pair[0] == field {
			return pair[1]
		}
	}
	return field
}

// SettingsOf reads what a module says under the key x-temporal in
// annotations.extra or metadata, as a JSON object with the keys of
// [SettingNames]; extra wins, and without any the result is zero. Durations are
// whole milliseconds. Whatever makes no sense (an unknown key, a value of another
// type or out of bounds, attempts for a module that runs at most once) fails with
// CONFIG_INVALID, which names the module and every such field with its value and
// bound; details.fields lists the fields.
func SettingsOf(definition *apcore.Descriptor) (Settings, error) {
	given, ok := definition.Annotations.Extra[ModuleSettingsKey]
	if !ok {
		given, ok = definition.Metadata[ModuleSettingsKey]
	}
	if !ok {
		return Settings{}, nil
	}
	text, err := apcore.EncodeJSON(given)
	if err != nil {
		return Settings{}, badSettings(definition.ID, nil, "it is no JSON")
	}
	object, err := apcore.DecodeObject(text)
	if err != nil {
		return Settings{}, badSettings(definition.ID, nil, "it is "+kindOf(given)+": give an object")
	}
	reader := &settingsReader{object: object}
	settings := reader.read()
	if len(reader.fields) > 0 {
		return Settings{}, badSettings(definition.ID, reader.fields, strings.Join(reader.texts, "; "))
	}
	class := ClassOf(&definition.Annotations)
	for _, problem := range settings.moduleProblems(class) {
		reader.refuse(problem.Setting(), problem.Text(problem.Setting()))
	}
	if len(reader.fields) > 0 {
		return Settings{}, badSettings(definition.ID, reader.fields, strings.Join(reader.texts, "; "))
	}
	return settings, nil
}

// moduleProblems adds what only the module itself must not say: a caller's
// context may be meant for many modules.
func (s Settings) moduleProblems(class Class) []Problem {
	found := s.Problems(class)
	if s.Attempts > 1 && !class.Repeats() {
		found = append(found, Problem{Field: "Attempts", Value: s.Attempts, Bound: "the module is neither readonly nor idempotent, so it runs at most once: leave it out"})
	}
	return found
}

func badSettings(moduleID string, fields []any, why string) error {
	e := newError(apcore.CodeConfigInvalid, "%s of module %q: %s", ModuleSettingsKey, moduleID, why).WithDetail("module_id", moduleID)
	if len(fields) > 0 {
		e = e.WithDetail("fields", fields)
	}
	return e
}

// settingsReader takes keys out of an object and notes what it cannot read.
type settingsReader struct {
	object map[string]any
	fields []any
	texts  []string
}

func (r *settingsReader) refuse(name, text string) {
	r.fields, r.texts = append(r.fields, name), append(r.texts, text)
}

func (r *settingsReader) read() Settings {
	settings := Settings{
		StartToClose:       r.milliseconds("start_to_close_ms", time.Millisecond, MaxTimeout),
		ScheduleToStart:    r.milliseconds("schedule_to_start_ms", time.Millisecond, MaxTimeout),
		ScheduleToClose:    r.milliseconds("schedule_to_close_ms", time.Millisecond, MaxTimeout),
		Heartbeat:          r.milliseconds("heartbeat_ms", MinHeartbeat, MaxTimeout),
		Attempts:           r.whole("attempts", MaxAttempts),
		Backoff:            r.milliseconds("backoff_ms", time.Millisecond, MaxBackoffSetting),
		MaxBackoff:         r.milliseconds("max_backoff_ms", time.Millisecond, MaxBackoffSetting),
		BackoffCoefficient: r.number("backoff_coefficient", 1, MaxCoefficient),
		NeverRetry:         r.codes("never_retry"),
		TaskQueue:          r.text("task_queue"),
		Priority:           r.whole("priority", MaxPriority),
		FairnessKey:        r.text("fairness_key"),
		FairnessWeight:     r.number("fairness_weight", MinFairnessWeight, MaxFairnessWeight),
		Execution:          Execution(r.text("execution")),
	}
	for _, name := range slices.Sorted(maps.Keys(r.object)) { // what is left, nobody knows
		r.refuse(name, fmt.Sprintf("%s is no setting: there are %s", quoted(name), strings.Join(SettingNames(), ", ")))
	}
	return settings
}

func (r *settingsReader) take(name string) (any, bool) {
	value, ok := r.object[name]
	delete(r.object, name)
	return value, ok
}

func (r *settingsReader) milliseconds(name string, low, high time.Duration) time.Duration {
	ms := r.between(name, low.Milliseconds(), high.Milliseconds(), " (a whole number of milliseconds)")
	return time.Duration(ms) * time.Millisecond
}

func (r *settingsReader) whole(name string, high int64) int {
	return int(r.between(name, 1, high, ""))
}

// between refuses zero too, which would mean the default here, and unlimited to
// those who know engines.
func (r *settingsReader) between(name string, low, high int64, unit string) int64 {
	value, ok := r.take(name)
	if !ok {
		return 0
	}
	number, _ := value.(json.Number)
	n, err := strconv.ParseInt(number.String(), 10, 64)
	if err != nil || n < low || n > high {
		r.refuse(name, fmt.Sprintf("%s is %s: give %d to %d%s", name, shown(value), low, high, unit))
		return 0
	}
	return n
}

func (r *settingsReader) number(name string, low, high float64) float64 {
	value, ok := r.take(name)
	if !ok {
		return 0
	}
	number, _ := value.(json.Number)
	n, err := number.Float64()
	if err != nil || n < low || n > high {
		r.refuse(name, fmt.Sprintf("%s is %s: give %v to %v", name, shown(value), low, high))
		return 0
	}
	return n
}

func (r *settingsReader) text(name string) string {
	value, ok := r.take(name)
	if !ok {
		return ""
	}
	text, _ := value.(string)
	if text == "" {
		r.refuse(name, fmt.Sprintf("%s is %s: give a text", name, shown(value)))
	}
	return text
}

func (r *settingsReader) codes(name string) []apcore.Code {
	value, ok := r.take(name)
	if !ok {
		return nil
	}
	list, isList := value.([]any)
	codes := make([]apcore.Code, 0, len(list))
	for _, item := range list {
		text, isText := item.(string)
		isList = isList && isText
		codes = append(codes, apcore.Code(text))
	}
	if !isList || len(codes) == 0 {
		r.refuse(name, fmt.Sprintf("%s is %s: give a list of error codes", name, shown(value)))
		return nil
	}
	return codes
}

// shown writes a value as somebody gave it, however long that is.
func shown(value any) string {
	switch value := value.(type) {
	case string:
		return quoted(value)
	case json.Number:
		if len(value) <= longestShown {
			return value.String()
		}
	case bool:
		return strconv.FormatBool(value)
	}
	return kindOf(value)
}

func kindOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case string:
		return "a text"
	case bool:
		return "a truth value"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	default:
		return "a number"
	}
}
