package apcore

import (
	"bytes"
	"io"
	"log/slog"
	"maps"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"
)

// PipelineConfig is the section "pipeline" of a configuration file (apcore
// §5.16.1). [Strategy.Apply] puts it into effect: first what is removed, then what
// is configured, then the steps that are added.
type PipelineConfig struct {
	// Remove names steps to leave out.
	Remove []string `yaml:"remove"`
	// Configure changes how steps are run, by their names.
	Configure map[string]StepSettings `yaml:"configure"`
	// Steps are added in this order.
	Steps []StepDeclaration `yaml:"steps"`
}

// StepSettings are the keys of a step that a configuration may set; what is
// absent stays as it is.
type StepSettings struct {
	MatchModules []string `yaml:"match_modules"`
	IgnoreErrors *bool    `yaml:"ignore_errors"`
	Pure         *bool    `yaml:"pure"`
	// TimeoutMS is in milliseconds; zero means none.
	TimeoutMS *int64 `yaml:"timeout_ms"`
}

// StepDeclaration adds one step behind After or in front of Before.
type StepDeclaration struct {
	Name string `yaml:"name"`
	// Type is one of the types given to [Strategy.Apply].
	Type string `yaml:"type"`
	// Handler is an import string of other languages, which a compiled one cannot
	// follow: it fails with PIPELINE_HANDLER_NOT_SUPPORTED.
	Handler string `yaml:"handler"`
	// Config is handed to the type.
	Config       map[string]any `yaml:"config"`
	StepSettings `yaml:",inline"`
	After        string `yaml:"after"`
	Before       string `yaml:"before"`
}

// StepType makes a step of its configuration. Name and settings of the
// declaration are put over what it returns.
type StepType func(config map[string]any) (Step, error)

// ParsePipelineConfig reads the section from YAML or JSON; empty data is an empty
// section. Unknown keys and values of another type fail with
// PIPELINE_CONFIGURATION_ERROR.
func ParsePipelineConfig(data []byte) (*PipelineConfig, error) {
	config := &PipelineConfig{}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(config); err != nil && err != io.EOF { //nolint:errorlint // never wrapped
		return nil, NewError(CodePipelineConfiguration, "no pipeline section: %w", err)
	}
	return config, nil
}

// Apply changes the strategy as a configuration says; when it fails, nothing is
// changed. types are the steps that may be added; logger is warned of a gate that
// is removed, nil means slog.Default().
//
// Errors are those of [Strategy.Remove], [Strategy.Configure] and
// [Strategy.InsertAfter]; a step of an unknown type, or without a place of its
// own, fails with PIPELINE_CONFIGURATION_ERROR.
func (s *Strategy) Apply(config *PipelineConfig, types map[string]StepType, logger *slog.Logger) error {
	if config == nil {
		return nil
	}
	changed := s.clone()
	for _, name := range config.Remove {
		if err := changed.Remove(name); err != nil {
			return err
		}
		if isGate(name) {
			loggerOr(logger).Warn("apcore: the configuration removes a gate, nobody is asked there any more", "strategy", s.name, "step", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(config.Configure)) {
		if err := changed.Configure(name, config.Configure[name].stepConfig()); err != nil {
			return err
		}
	}
	for i := range config.Steps {
		if err := changed.declare(&config.Steps[i], types); err != nil {
			return err
		}
	}
	*s = *changed
	return nil
}

func (s StepSettings) stepConfig() StepConfig {
	config := StepConfig{MatchModules: s.MatchModules, IgnoreErrors: s.IgnoreErrors, Pure: s.Pure}
	if s.TimeoutMS != nil {
		config.Timeout = new(time.Duration(*s.TimeoutMS) * time.Millisecond)
	}
	return config
}

// declare adds one step.
func (s *Strategy) declare(d *StepDeclaration, types map[string]StepType) error {
	switch {
	case d.Handler != "":
		return NewError(CodePipelineHandlerNotSupported, "step %q names the handler %q: Go cannot import it, give a type that the host registers", d.Name, d.Handler)
	case types[d.Type] == nil:
		return NewError(CodePipelineConfiguration, "step %q has the type %q, which this host does not know", d.Name, d.Type)
	case (d.After == "") == (d.Before == ""):
		return NewError(CodePipelineConfiguration, "step %q needs a place: give either after or before", d.Name)
	}
	step, err := types[d.Type](copyObject(d.Config))
	if err != nil {
		return NewError(CodePipelineConfiguration, "step %q cannot be made: %w", d.Name, err)
	}
	step.Name = d.Name
	if d.After != "" {
		err = s.InsertAfter(d.After, step)
	} else {
		err = s.InsertBefore(d.Before, step)
	}
	if err != nil {
		return err
	}
	return s.Configure(d.Name, d.stepConfig())
}
