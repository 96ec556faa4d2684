package durable

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// Settings is what a module may say under the key x-temporal in
// annotations.extra or metadata, as a JSON object; extra wins. Durations are
// milliseconds, zero leaves the default. Unknown keys are an error.
type Settings struct {
	// StartToCloseMS bounds one attempt.
	StartToCloseMS int64 `json:"start_to_close_ms,omitempty"`
	// HeartbeatMS is how long a worker may give no sign of life.
	HeartbeatMS int64 `json:"heartbeat_ms,omitempty"`
	// Attempts bounds the attempts of a safe or idempotent module, 1 to 1000; it
	// changes nothing for a module that runs at most once.
	Attempts int `json:"attempts,omitempty"`
	// TaskQueue names the workers that host the module.
	TaskQueue string `json:"task_queue,omitempty"`
}

const (
	maxSettingMS    = int64(30 * 24 * time.Hour / time.Millisecond)
	maxAttempts     = 1000
	minHeartbeatMS  = 100
	maxQueueNameLen = 1000
)

// SettingsOf reads a module's settings; without any it returns zero. What does
// not make sense fails with CONFIG_INVALID naming module and field.
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
		return Settings{}, badSettings(definition.ID, "it is no JSON object")
	}
	var settings Settings
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&settings); err != nil {
		return Settings{}, badSettings(definition.ID, err.Error())
	}
	return settings, settings.validate(definition.ID)
}

func (s Settings) validate(moduleID string) error {
	switch {
	case s.StartToCloseMS < 0 || s.StartToCloseMS > maxSettingMS:
		return badSettings(moduleID, "start_to_close_ms must be 1 to 2592000000")
	case s.HeartbeatMS != 0 && (s.HeartbeatMS < minHeartbeatMS || s.HeartbeatMS > maxSettingMS):
		return badSettings(moduleID, "heartbeat_ms must be 100 to 2592000000")
	case s.Attempts < 0 || s.Attempts > maxAttempts:
		return badSettings(moduleID, "attempts must be 1 to 1000")
	case len(s.TaskQueue) > maxQueueNameLen:
		return badSettings(moduleID, "task_queue must have 1000 bytes at most")
	}
	return nil
}

func badSettings(moduleID, why string) error {
	return newError(apcore.CodeConfigInvalid, "%s of module %q: %s", ModuleSettingsKey, moduleID, why).WithDetail("module_id", moduleID)
}

// Apply puts the settings over a policy.
func (s Settings) Apply(policy Policy) Policy {
	if s.StartToCloseMS > 0 {
		policy.StartToClose = time.Duration(s.StartToCloseMS) * time.Millisecond
	}
	if s.HeartbeatMS > 0 {
		policy.Heartbeat = time.Duration(s.HeartbeatMS) * time.Millisecond
	}
	if s.Attempts > 0 && policy.Class.Repeats() {
		policy.Attempts = s.Attempts
	}
	if policy.ScheduleToClose > 0 {
		policy.ScheduleToClose = max(policy.ScheduleToClose, policy.StartToClose)
	}
	return policy
}
