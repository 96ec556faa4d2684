package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.temporal.io/server/common/dynamicconfig"
)

// defaultDynamicConfig is what makes the server fit for one machine. A
// --dynamic-config-value flag for the same key wins.
var defaultDynamicConfig = map[string]any{
	// At the server's own default of 20 a second, each step of a workflow
	// waits for up to 50 ms.
	"history.transferProcessorMaxPollRPS":   10_000,
	"history.timerProcessorMaxPollRPS":      10_000,
	"history.visibilityProcessorMaxPollRPS": 10_000,
	// Search attributes are in the store before the server starts, so reads
	// need not look for new ones. Doing so makes lists hundreds of times slower.
	"system.forceSearchAttributesCacheRefreshOnRead": false,
	// A server on one machine has nobody to report its version to.
	"frontend.enableServerVersionCheck": false,
}

// parseDynamicConfig reads the --dynamic-config-value flags, each KEY=JSON,
// over the defaults. Keys are case-insensitive, as the server has them. The
// last value given for a key counts.
func parseDynamicConfig(flags []string) (dynamicconfig.StaticClient, error) {
	values := dynamicconfig.StaticClient{}
	for key, value := range defaultDynamicConfig {
		values[dynamicconfig.MakeKey(key)] = value
	}
	for _, flag := range flags {
		key, text, ok := strings.Cut(flag, "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("--dynamic-config-value %q has no key: give KEY=JSON", flag)
		}
		value, err := parseDynamicValue(dynamicconfig.MakeKey(key), text)
		if err != nil {
			return nil, fmt.Errorf("--dynamic-config-value %q: %w", flag, err)
		}
		values[dynamicconfig.MakeKey(key)] = value
	}
	return values, nil
}

// parseDynamicValue reads one JSON value with the server's own loader, which
// knows the settings and the type of each. What the loader only warns of is an
// error here: an unknown setting would be ignored in silence.
func parseDynamicValue(key dynamicconfig.Key, text string) ([]dynamicconfig.ConstrainedValue, error) {
	if !json.Valid([]byte(text)) {
		return nil, errors.New("the value is no JSON: text needs quotes, as in KEY='\"text\"'")
	}
	var loader dynamicconfig.YamlLoader
	loader.LoadValue(key, []byte("- value: "+text)) // JSON is YAML
	if err := errors.Join(append(loader.Errors, loader.Warnings...)...); err != nil {
		return nil, fmt.Errorf("the server does not take it: %w", err)
	}
	return loader.Map[key], nil
}
