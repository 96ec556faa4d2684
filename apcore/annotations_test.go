package apcore_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// logged runs fn and returns what it wrote to the default logger.
func logged(t *testing.T, fn func()) string {
	t.Helper()
	var out strings.Builder
	before := slog.Default()
	defer slog.SetDefault(before)
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	fn()
	return out.String()
}

func TestAnnotationsWireForm(t *testing.T) {
	const want = `{"readonly":false,"destructive":false,"idempotent":false,"requires_approval":false,"open_world":true,` +
		`"streaming":false,"cacheable":false,"cache_ttl":0,"cache_key_fields":null,"paginated":false,` +
		`"pagination_style":"cursor","discoverable":true,"extra":{}}`
	got, err := apcore.Annotations{}.MarshalJSON()
	if err != nil || string(got) != want {
		t.Errorf("zero value: %s, %v\nwant %s", got, err, want)
	}
	full := apcore.Annotations{
		Readonly: true, Destructive: true, Idempotent: true, RequiresApproval: true, ClosedWorld: true, Streaming: true,
		Cacheable: true, CacheTTL: 60, CacheKeyFields: []string{"q"}, Paginated: true, PaginationStyle: "page", Hidden: true,
		Extra: map[string]any{"a.b": map[string]any{"<": []any{1, nil}}},
	}
	const wantFull = `{"readonly":true,"destructive":true,"idempotent":true,"requires_approval":true,"open_world":false,` +
		`"streaming":true,"cacheable":true,"cache_ttl":60,"cache_key_fields":["q"],"paginated":true,` +
		`"pagination_style":"page","discoverable":false,"extra":{"a.b":{"<":[1,null]}}}`
	if got, err = full.MarshalJSON(); err != nil || string(got) != wantFull {
		t.Errorf("every field: %s, %v\nwant %s", got, err, wantFull)
	}
	if full.OpenWorld() || full.Discoverable() || !(apcore.Annotations{}).OpenWorld() || !(apcore.Annotations{}).Discoverable() {
		t.Error("a negated field is read the wrong way round")
	}
	wantMap := map[string]any{
		"readonly": true, "destructive": true, "idempotent": true, "requires_approval": true, "open_world": false,
		"streaming": true, "cacheable": true, "cache_ttl": 60, "cache_key_fields": []any{"q"}, "paginated": true,
		"pagination_style": "page", "discoverable": false, "extra": map[string]any{"a.b": map[string]any{"<": []any{1, nil}}},
	}
	if diff := cmp.Diff(wantMap, full.Map()); diff != "" {
		t.Errorf("map (-want +got):\n%s", diff)
	}
	back, err := apcore.AnnotationsFromMap(full.Map())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(full, back); diff != "" {
		t.Errorf("there and back (-want +got):\n%s", diff)
	}
}

func TestAnnotationsFromMap(t *testing.T) {
	for name, test := range map[string]struct {
		given map[string]any
		want  apcore.Annotations
	}{
		"nil":            {nil, apcore.Annotations{}},
		"nulls":          {map[string]any{"readonly": nil, "open_world": nil, "cache_ttl": nil, "extra": nil}, apcore.Annotations{}},
		"negations":      {map[string]any{"open_world": false, "discoverable": false}, apcore.Annotations{ClosedWorld: true, Hidden: true}},
		"default style":  {map[string]any{"pagination_style": "cursor"}, apcore.Annotations{}},
		"float ttl":      {map[string]any{"cache_ttl": 60.0}, apcore.Annotations{CacheTTL: 60}},
		"number ttl":     {map[string]any{"cache_ttl": json.Number("6e1")}, apcore.Annotations{CacheTTL: 60}},
		"small ttl":      {map[string]any{"cache_ttl": uint8(7)}, apcore.Annotations{CacheTTL: 7}},
		"Go list":        {map[string]any{"cache_key_fields": []string{"a"}}, apcore.Annotations{CacheKeyFields: []string{"a"}}},
		"empty list":     {map[string]any{"cache_key_fields": []any{}}, apcore.Annotations{CacheKeyFields: []string{}}},
		"flat":           {map[string]any{"mcp.x": 1}, apcore.Annotations{Extra: map[string]any{"mcp.x": 1}}},
		"nested wins":    {map[string]any{"x": 1, "y": 2, "extra": map[string]any{"x": 3}}, apcore.Annotations{Extra: map[string]any{"x": 3, "y": 2}}},
		"typed extra":    {map[string]any{"extra": map[string]string{"x": "y"}}, apcore.Annotations{Extra: map[string]any{"x": "y"}}},
		"extra of extra": {map[string]any{"extra": map[string]any{"extra": 1}}, apcore.Annotations{Extra: map[string]any{"extra": 1}}},
	} {
		got, err := apcore.AnnotationsFromMap(test.given)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// What cannot be understood is an error: an approval must not get lost.
func TestAnnotationsFromMapRefuses(t *testing.T) {
	for key, value := range map[string]any{
		"requires_approval": "true", "readonly": 1, "open_world": "no", "cache_ttl": 1.5, "cache_key_fields": "q",
		"pagination_style": 3, "extra": []any{}, "x": func() {}, "discoverable": []any{},
	} {
		got, err := apcore.AnnotationsFromMap(map[string]any{key: value, "destructive": true})
		if !errors.Is(err, apcore.CodeInvalidInput) || !strings.Contains(err.Error(), key) {
			t.Errorf("%s = %v: %v", key, value, err)
		}
		if diff := cmp.Diff(apcore.Annotations{}, got); diff != "" {
			t.Errorf("%s: half a value came with the error", key)
		}
	}
	for _, ttl := range []any{math.Inf(1), math.NaN(), 1e300, json.Number("1e99"), uint64(math.MaxUint64), "1"} {
		if got, err := apcore.AnnotationsFromMap(map[string]any{"cache_ttl": ttl}); err == nil {
			t.Errorf("cache_ttl %v became %d", ttl, got.CacheTTL)
		}
	}
	if _, err := apcore.AnnotationsFromMap(map[string]any{"cache_key_fields": []any{"a", 1}}); err == nil {
		t.Error("a number is no input name")
	}
}

func TestAnnotationsWarn(t *testing.T) {
	var got apcore.Annotations
	out := logged(t, func() {
		var err error
		got, err = apcore.AnnotationsFromMap(map[string]any{
			"cache_ttl": -5, "extra": map[string]any{"readonly": true, "fine": 1},
		})
		if err != nil {
			t.Fatal(err)
		}
	})
	if diff := cmp.Diff(apcore.Annotations{Extra: map[string]any{"fine": 1}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, part := range []string{"cache_ttl=-5", "key=readonly"} {
		if !strings.Contains(out, part) {
			t.Errorf("no warning with %s in:\n%s", part, out)
		}
	}
	out = logged(t, func() {
		wire := apcore.Annotations{CacheTTL: -1, Extra: map[string]any{"destructive": true, "fine": 1}}.Map()
		if wire["cache_ttl"] != 0 || wire["destructive"] != false || len(wire["extra"].(map[string]any)) != 1 {
			t.Errorf("a producer writes %v", wire)
		}
	})
	if !strings.Contains(out, "key=destructive") {
		t.Errorf("no warning in:\n%s", out)
	}
}

func TestAnnotationsThatAreNoJSON(t *testing.T) {
	bad := apcore.Annotations{Readonly: true, Extra: map[string]any{"f": func() {}}}
	if _, err := bad.MarshalJSON(); !errors.Is(err, apcore.CodeInvalidInput) {
		t.Errorf("MarshalJSON: %v", err)
	}
	out := logged(t, func() {
		if wire := bad.Map(); wire["readonly"] != true || len(wire["extra"].(map[string]any)) != 0 {
			t.Errorf("map: %v", wire)
		}
	})
	if !strings.Contains(out, "left out") {
		t.Errorf("no warning in %q", out)
	}
	var a apcore.Annotations
	for _, text := range []string{`[]`, `{"readonly":"yes"}`, `{`} {
		if err := json.Unmarshal([]byte(text), &a); err == nil {
			t.Errorf("%s was read as %+v", text, a)
		}
	}
	a.Hidden = true
	if err := json.Unmarshal([]byte("null"), &a); err != nil || !a.Hidden {
		t.Errorf("null: %+v, %v", a, err)
	}
}

func TestAnnotationsClone(t *testing.T) {
	given := apcore.Annotations{CacheKeyFields: []string{"a"}, Extra: map[string]any{"x": []any{map[string]any{"y": 1}}}}
	clone := given.Clone()
	if diff := cmp.Diff(given, clone); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	given.CacheKeyFields[0] = "spoilt"
	given.Extra["x"].([]any)[0].(map[string]any)["y"] = 2
	given.Extra["z"] = 3
	want := apcore.Annotations{CacheKeyFields: []string{"a"}, Extra: map[string]any{"x": []any{map[string]any{"y": 1}}}}
	if diff := cmp.Diff(want, clone); diff != "" {
		t.Errorf("the clone follows the original (-want +got):\n%s", diff)
	}
	if empty := (apcore.Annotations{}).Clone(); empty.Extra != nil || empty.CacheKeyFields != nil {
		t.Errorf("nil became %+v", empty)
	}
}

func TestAnnotationsRoundTrip(t *testing.T) {
	flag := rapid.Bool()
	scalar := rapid.OneOf(rapid.String().AsAny(), rapid.Bool().AsAny(), rapid.Just[any](nil), rapid.Just[any](json.Number("9007199254740993")))
	rapid.Check(t, func(t *rapid.T) {
		given := apcore.Annotations{
			Readonly: flag.Draw(t, "readonly"), Destructive: flag.Draw(t, "destructive"), Idempotent: flag.Draw(t, "idempotent"),
			RequiresApproval: flag.Draw(t, "approval"), ClosedWorld: flag.Draw(t, "closed"), Streaming: flag.Draw(t, "streaming"),
			Cacheable: flag.Draw(t, "cacheable"), CacheTTL: rapid.IntRange(0, 1<<40).Draw(t, "ttl"), Paginated: flag.Draw(t, "paginated"),
			PaginationStyle: rapid.SampledFrom([]string{"", "page", "offset", "own"}).Draw(t, "style"), Hidden: flag.Draw(t, "hidden"),
			CacheKeyFields: rapid.SampledFrom([][]string{nil, {}, {"a", "b"}}).Draw(t, "fields"),
			Extra:          rapid.MapOfN(rapid.StringMatching(`[a-z]{1,4}\.[a-zé.]{1,8}`), scalar, 1, 4).Draw(t, "extra"),
		}
		text, err := json.Marshal(given)
		if err != nil {
			t.Fatal(err)
		}
		var back apcore.Annotations
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(given, back); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", text, diff)
		}
	})
}
