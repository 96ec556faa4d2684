package apcore

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Config is what this package heeds of a configuration file (apcore §11.6).
// Other keys of the file are for others and ignored. Approval, policy, middleware
// and extensions have no keys: they are code.
type Config struct {
	// Version is that of the file's format, and ProjectName the name of the
	// project. Both are required in the file; this package does nothing with them.
	Version     string
	ProjectName string
	// DefaultTimeout and GlobalTimeout are executor.default_timeout and
	// executor.global_timeout, in milliseconds in the file, where 0 switches the
	// timer off ([NoTimeout]).
	DefaultTimeout time.Duration
	GlobalTimeout  time.Duration
	// MaxCallDepth and MaxModuleRepeat are executor.max_call_depth (1 to 1000) and
	// executor.max_module_repeat (1 to 100).
	MaxCallDepth    int
	MaxModuleRepeat int
	// ACLRoot is acl.root, the directory of [DiscoverACL].
	ACLRoot string
	// Redaction is obs.redaction: sensitive_keys, regex_patterns, replacement.
	Redaction RedactionConfig
}

// LoadConfig reads a configuration file in YAML or JSON and lets this process's
// environment override it, see [ParseConfig]. A missing file fails with
// CONFIG_NOT_FOUND.
func LoadConfig(path string) (*Config, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, NewError(CodeConfigNotFound, "there is no configuration file %s", path).WithCause(err).WithDetail("path", path)
	}
	if err != nil {
		return nil, NewError(CodeConfigInvalid, "the configuration file cannot be read: %w", err).WithDetail("path", path)
	}
	config, err := ParseConfig(data, os.Environ())
	if err != nil {
		return nil, AsError(err).WithDetail("path", path)
	}
	return config, nil
}

// ParseConfig reads a configuration in YAML or JSON. Variables of environ
// (NAME=value) win over it; what neither sets has the standard's default. The
// variable of executor.default_timeout is APCORE_EXECUTOR_DEFAULT__TIMEOUT, where
// one underscore stands for a dot and two for an underscore;
// APCORE_EXECUTOR_DEFAULT_TIMEOUT works too, and counts less. A malformed document
// and a value of the wrong type or out of bounds fail with CONFIG_INVALID and
// details.key.
func ParseConfig(data []byte, environ []string) (*Config, error) {
	document := map[string]any{}
	if err := yaml.Unmarshal(data, &document); err != nil {
		return nil, NewError(CodeConfigInvalid, "the configuration is no object in YAML: %w", err)
	}
	config := &Config{
		DefaultTimeout: DefaultModuleTimeout, GlobalTimeout: DefaultGlobalTimeout,
		MaxCallDepth: DefaultMaxCallDepth, MaxModuleRepeat: DefaultMaxModuleRepeat, ACLRoot: DefaultACLRoot,
	}
	variables := variablesOf(environ)
	for _, setting := range configSettings {
		value, given, err := setting.find(document, variables)
		if err != nil {
			return nil, err
		}
		if !given {
			if setting.required {
				return nil, configInvalid(setting.key, "is required")
			}
			continue
		}
		if reason := setting.read(config, value); reason != "" {
			return nil, configInvalid(setting.key, reason)
		}
	}
	if _, err := NewRedactor(config.Redaction); err != nil {
		return nil, err
	}
	return config, nil
}

func configInvalid(key, reason string) *Error {
	return NewError(CodeConfigInvalid, "configuration: %s %s", key, reason).WithDetail("key", key)
}

// ExecutorOptions returns options for [NewExecutor] with everything the
// configuration says, access rules included: it fails as [DiscoverACL] does.
func (c *Config) ExecutorOptions(acl ACLOptions) (ExecutorOptions, error) {
	opts := ExecutorOptions{
		DefaultTimeout: c.DefaultTimeout, GlobalTimeout: c.GlobalTimeout,
		MaxCallDepth: c.MaxCallDepth, MaxModuleRepeat: c.MaxModuleRepeat, Redaction: c.Redaction, Logger: acl.Logger,
	}
	rules, err := DiscoverACL(c.ACLRoot, acl)
	if err != nil {
		return ExecutorOptions{}, err
	}
	if rules != nil {
		opts.AccessControl = rules
	}
	return opts, nil
}

// configSetting is one key of the file; read returns what is wrong with a value.
type configSetting struct {
	key      string
	required bool
	read     func(c *Config, value any) (reason string)
}

var configSettings = []configSetting{
	{"version", true, func(c *Config, v any) string { return readText(v, &c.Version) }},
	{"project.name", true, func(c *Config, v any) string { return readText(v, &c.ProjectName) }},
	{"executor.default_timeout", false, func(c *Config, v any) string { return readMillis(v, &c.DefaultTimeout) }},
	{"executor.global_timeout", false, func(c *Config, v any) string { return readMillis(v, &c.GlobalTimeout) }},
	{"executor.max_call_depth", false, func(c *Config, v any) string { return readWhole(v, maxCallDepthBound, &c.MaxCallDepth) }},
	{"executor.max_module_repeat", false, func(c *Config, v any) string { return readWhole(v, maxModuleRepeatBound, &c.MaxModuleRepeat) }},
	{"acl.root", false, func(c *Config, v any) string { return readText(v, &c.ACLRoot) }},
	{"obs.redaction.sensitive_keys", false, func(c *Config, v any) string { return readTexts(v, &c.Redaction.SensitiveKeys) }},
	{"obs.redaction.regex_patterns", false, func(c *Config, v any) string { return readTexts(v, &c.Redaction.Patterns) }},
	{"obs.redaction.replacement", false, func(c *Config, v any) string { return readText(v, &c.Redaction.Replacement) }},
}

// find looks for a setting in the environment, then in the document. null is not
// given.
func (s configSetting) find(document map[string]any, variables map[string]string) (value any, given bool, err error) {
	for _, name := range s.variables() {
		if text, ok := variables[name]; ok {
			return coerced(text), true, nil
		}
	}
	value = document
	for part := range strings.SplitSeq(s.key, ".") {
		section, ok := value.(map[string]any)
		if !ok {
			return nil, false, configInvalid(s.key, "stands in something that is no object")
		}
		if value = section[part]; value == nil {
			return nil, false, nil
		}
	}
	return value, true, nil
}

// variables are the names of a setting in the environment, the exact one first.
func (s configSetting) variables() [2]string {
	exact := strings.NewReplacer("_", "__", ".", "_").Replace(s.key)
	loose := strings.ReplaceAll(s.key, ".", "_")
	return [2]string{"APCORE_" + strings.ToUpper(exact), "APCORE_" + strings.ToUpper(loose)}
}

func variablesOf(environ []string) map[string]string {
	variables := map[string]string{}
	for _, line := range environ {
		if name, value, ok := strings.Cut(line, "="); ok && strings.HasPrefix(name, "APCORE_") {
			variables[name] = value
		}
	}
	return variables
}

// envText is a value of the environment that may be read as a text or as what it
// looks like.
type envText struct {
	text  string
	value any
}

func coerced(text string) any {
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		value = text
	}
	return envText{text, value}
}

func plain(value any) any {
	if text, ok := value.(envText); ok {
		return text.value
	}
	return value
}

func readText(value any, target *string) string {
	if text, ok := value.(envText); ok {
		value = text.text
	}
	text, ok := value.(string)
	if !ok || text == "" {
		return fmt.Sprintf("is a %T: want a text that is not empty", value)
	}
	*target = text
	return ""
}

func readTexts(value any, target *[]string) string {
	items, ok := plain(value).([]any)
	if !ok {
		return fmt.Sprintf("is a %T: want a list of texts", plain(value))
	}
	texts := make([]string, len(items))
	for i, item := range items {
		if texts[i], ok = item.(string); !ok {
			return fmt.Sprintf("has a %T at %d: want a list of texts", item, i)
		}
	}
	*target = texts
	return ""
}

func readWhole(value any, bound int, target *int) string {
	number, ok := wholeNumber(plain(value))
	if !ok || number < 1 || number > bound {
		return fmt.Sprintf("is %v: want a whole number from 1 to %d", plain(value), bound)
	}
	*target = number
	return ""
}

const maxMillis = math.MaxInt64 / int64(time.Millisecond)

func readMillis(value any, target *time.Duration) string {
	number, ok := wholeNumber(plain(value))
	switch {
	case !ok || number < 0 || int64(number) > maxMillis:
		return fmt.Sprintf("is %v: want whole milliseconds, 0 for none", plain(value))
	case number == 0:
		*target = NoTimeout
	default:
		*target = time.Duration(number) * time.Millisecond
	}
	return ""
}
