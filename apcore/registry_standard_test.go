package apcore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// §2.1, §2.2, §10.1: which path takes which ids.
func TestRegistrationPaths(t *testing.T) {
	for id, want := range map[string]struct{ public, internal, discovered bool }{
		"orders.create":    {true, true, true},
		"system.health":    {false, true, false},
		"internal":         {false, true, false},
		"core.x":           {false, true, false},
		"acl.x":            {false, true, false},
		"ephemeral":        {true, false, false},
		"ephemeral.tool_1": {true, false, false},
		"ephemerals.tool":  {true, true, true},
		"orders.ephemeral": {true, true, true},
		"Orders":           {false, false, false},
		"ephemeral.Bad":    {false, false, false},
	} {
		public, internal, discovering := quiet(), quiet(), quiet()
		errs := []error{public.Register(id, &testModule{}, apcore.RegisterOptions{}), internal.RegisterInternal(id, &testModule{}, apcore.RegisterOptions{})}
		for i, wanted := range []bool{want.public, want.internal} {
			if (errs[i] == nil) != wanted || errs[i] != nil && !errors.Is(errs[i], apcore.CodeInvalidModuleID) {
				t.Errorf("%s, path %d: %v, want success: %t", id, i, errs[i], wanted)
			}
		}
		discovering.SetDiscoverer(finder{found: []apcore.DiscoveredModule{{ModuleID: id, Module: &testModule{}}}})
		_, err := discovering.Discover(t.Context())
		must(t, err)
		if discovering.Has(id) != want.discovered {
			t.Errorf("%s: discovered %t, want %t", id, discovering.Has(id), want.discovered)
		}
	}
}

// §2.2: events about ephemeral modules name who is behind them, without secrets.
func TestEphemeralEvents(t *testing.T) {
	identity := apcore.NewIdentity("ada", "user", []string{"dev"}, obj{"api_key": "k-123", "team": "west"})
	caller := apcore.NewContext(apcore.ContextOptions{Identity: identity}).Child("agent.plan").Child("agent.act")
	known := obj{
		"module_id": "ephemeral.tool", "version": "1.0.0", "namespace_class": "ephemeral", "caller_id": "agent.plan",
		"identity": obj{"id": "ada", "type": "user", "roles": []any{"dev"}, "attrs": obj{"api_key": "***REDACTED***", "team": "west"}},
	}
	unknown := obj{"module_id": "ephemeral.tool", "version": "1.0.0", "namespace_class": "ephemeral", "caller_id": apcore.ExternalCaller, "identity": nil}
	for _, test := range []struct {
		id     string
		caller *apcore.Context
		want   obj
	}{
		{"ephemeral.tool", caller, known},
		{"ephemeral.tool", nil, unknown},
		{"orders.create", caller, obj{"module_id": "orders.create", "version": "1.0.0"}},
	} {
		var events []apcore.Event
		r := registryWith(&events)
		must(t, r.Register(test.id, &testModule{}, apcore.RegisterOptions{Caller: test.caller}))
		r.Unregister(test.id, apcore.UnregisterOptions{Caller: test.caller})
		for i, name := range []string{apcore.EventModuleRegistered, apcore.EventModuleUnregistered} {
			if len(events) != 2 || events[i].Type != name {
				t.Fatalf("events %+v", events)
			}
			if diff := cmp.Diff(test.want, wire(events[i].Data)); diff != "" {
				t.Errorf("%s of %s (-want +got):\n%s", name, test.id, diff)
			}
		}
	}
}

// What is allowed but not advisable is warned of at registration, and nothing
// else is.
func TestRegistrationWarnings(t *testing.T) {
	long := &wordy{description: strings.Repeat("ä", 201), documentation: strings.Repeat("ö", 5001)}
	longest := &wordy{description: strings.Repeat("ä", 200), documentation: strings.Repeat("ö", 5000)}
	for _, test := range []struct {
		id     string
		module apcore.Module
		want   []string
	}{
		{"a.fine", longest, nil},
		{"a.long", long, []string{"description is longer", "documentation is longer"}},
		{"ephemeral.open", longest, []string{"ephemeral module should"}},
		{"ephemeral.shown", &testModule{annotations: apcore.Annotations{RequiresApproval: true}}, []string{"ephemeral module should"}},
		{"ephemeral.free", &testModule{annotations: apcore.Annotations{Hidden: true}}, []string{"ephemeral module should"}},
		{"ephemeral.tame", &testModule{annotations: apcore.Annotations{RequiresApproval: true, Hidden: true}}, nil},
	} {
		var log ledger
		r := apcore.NewRegistry(apcore.RegistryOptions{Logger: logTo(&log)})
		must(t, r.Register(test.id, test.module, apcore.RegisterOptions{}))
		got := log.all()
		if len(got) != len(test.want) {
			t.Errorf("%s: %q, want %q", test.id, got, test.want)
			continue
		}
		for i, part := range test.want {
			if !strings.Contains(got[i], part) {
				t.Errorf("%s: %q lacks %q", test.id, got[i], part)
			}
		}
	}
}

type wordy struct {
	testModule
	description, documentation, own string
}

func (w *wordy) Description() string   { return w.description }
func (w *wordy) Documentation() string { return w.documentation }

// §10.4: a deprecation is warned of when somebody looks, once for each version
// and text, and not again after the module went and came.
func TestDeprecation(t *testing.T) {
	var log ledger
	r := apcore.NewRegistry(apcore.RegistryOptions{Logger: logTo(&log)})
	deprecated := func(version, date string) apcore.RegisterOptions {
		return apcore.RegisterOptions{Version: version, Metadata: obj{"x-deprecation": obj{"sunset_date": date, "replacement": "a.new"}}}
	}
	count := func(want int, when string) {
		t.Helper()
		if got := log.count(); got != want {
			t.Errorf("%s: %d warnings, want %d: %q", when, got, want, log.all())
		}
	}
	must(t, r.Register("a.old", &testModule{}, deprecated("1.0.0", "2027-01-31")))
	must(t, r.Register("a.fine", &testModule{}, apcore.RegisterOptions{}))
	count(0, "registered")
	if d := r.Definition("a.old"); d.SunsetDate != "2027-01-31" {
		t.Errorf("sunset date %q", d.SunsetDate)
	}
	r.Definition("a.old")
	r.Definition("a.fine")
	count(1, "looked at twice")
	if got := log.all()[0]; !strings.Contains(got, "2027-01-31") || !strings.Contains(got, "a.new") || !strings.Contains(got, "a.old") {
		t.Errorf("the warning does not say what to do: %q", got)
	}
	r.Unregister("a.old", apcore.UnregisterOptions{})
	must(t, r.Register("a.old", &testModule{}, deprecated("1.0.0", "2027-01-31")))
	r.Definition("a.old")
	count(1, "came again")
	must(t, r.Register("a.old", &testModule{}, deprecated("1.1.0", "2027-01-31")))
	_, _, err := r.Resolve("a.old", "1.1.0")
	must(t, err)
	count(2, "another version")
	r.Unregister("a.old", apcore.UnregisterOptions{})
	must(t, r.Register("a.old", &testModule{}, deprecated("1.1.0", "2027-06-30")))
	r.Definition("a.old")
	count(3, "another text")
}

// §1.4: what metadata declares goes over what the module says, field by field;
// gates only ever get stricter.
func TestDeclaredLayer(t *testing.T) {
	own := apcore.Annotations{Readonly: true, RequiresApproval: true, Cacheable: true, CacheTTL: 60, Extra: obj{"a.x": 1, "a.y": 1}}
	for name, test := range map[string]struct {
		declared any
		change   func(*apcore.Annotations)
		code     apcore.Code
	}{
		"nothing":       {obj{}, func(*apcore.Annotations) {}, ""},
		"one field":     {obj{"cache_ttl": 5}, func(a *apcore.Annotations) { a.CacheTTL = 5 }, ""},
		"to false":      {obj{"readonly": false, "cacheable": nil}, func(a *apcore.Annotations) { a.Readonly = false }, ""},
		"negated":       {obj{"discoverable": false}, func(a *apcore.Annotations) { a.Hidden = true }, ""},
		"stricter":      {obj{"destructive": true}, func(a *apcore.Annotations) { a.Destructive = true }, ""},
		"never laxer":   {obj{"requires_approval": false}, func(*apcore.Annotations) {}, ""},
		"extra":         {obj{"extra": obj{"a.y": "2"}, "a.z": true}, func(a *apcore.Annotations) { a.Extra = obj{"a.x": 1, "a.y": "2", "a.z": true} }, ""},
		"no annotation": {obj{"readonly": "yes"}, nil, apcore.CodeInvalidInput},
		"no object":     {[]any{"readonly"}, nil, apcore.CodeInvalidInput},
	} {
		t.Run(name, func(t *testing.T) {
			r := quiet()
			err := r.Register("m", &testModule{annotations: own}, apcore.RegisterOptions{Metadata: obj{"annotations": test.declared}})
			if apcore.CodeOf(err) != test.code || test.code != "" {
				if apcore.CodeOf(err) != test.code {
					t.Errorf("%v, want %q", err, test.code)
				}
				return
			}
			want := own.Clone()
			test.change(&want)
			if diff := cmp.Diff(wire(want), wire(r.Definition("m").Annotations)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	r := quiet()
	must(t, r.Register("m", &rich{}, apcore.RegisterOptions{Metadata: obj{"examples": []any{obj{"title": "two", "inputs": obj{"n": 2}}}, "tags": []any{"b"}}}))
	if d := r.Definition("m"); len(d.Examples) != 1 || d.Examples[0].Title != "two" {
		t.Errorf("examples %+v", d.Examples)
	}
	if got := r.List(apcore.ListOptions{Tags: []string{"a", "b"}}); !slices.Equal(got, []string{"m"}) {
		t.Errorf("the tags of both layers: %v", got)
	}
	if err := r.Register("n", &rich{}, apcore.RegisterOptions{Metadata: obj{"examples": "two"}}); !errors.Is(err, apcore.CodeInvalidInput) {
		t.Errorf("examples that are none: %v", err)
	}
}

// §10.3: what is listed, in which order, and what is hidden.
func TestListings(t *testing.T) {
	r := quiet()
	hidden := func(m *testModule) *testModule { m.annotations.Hidden = true; return m }
	for _, id := range []string{"b.two", "a.one", "a.ten", "b.one"} {
		must(t, r.Register(id, &testModule{}, apcore.RegisterOptions{}))
	}
	must(t, r.Register("a.secret", hidden(&testModule{}), apcore.RegisterOptions{}))
	const public, secret = apcore.VisibilityPublic, apcore.VisibilityHidden
	for _, test := range []struct {
		opts apcore.ListOptions
		want string
	}{
		{apcore.ListOptions{}, "[a.one a.ten b.one b.two]"},
		{apcore.ListOptions{Visibility: []apcore.Visibility{public}}, "[a.one a.ten b.one b.two]"},
		{apcore.ListOptions{Visibility: []apcore.Visibility{secret}}, "[a.secret]"},
		{apcore.ListOptions{Visibility: []apcore.Visibility{secret, public}}, "[a.one a.secret a.ten b.one b.two]"},
		{apcore.ListOptions{Visibility: []apcore.Visibility{"other"}}, "[]"},
		{apcore.ListOptions{Prefix: "a."}, "[a.one a.ten]"},
		{apcore.ListOptions{Prefix: "a.t"}, "[a.ten]"},
		{apcore.ListOptions{Tags: []string{"none"}}, "[]"},
	} {
		if got := fmt.Sprint(r.List(test.opts)); got != test.want {
			t.Errorf("%+v: %s, want %s", test.opts, got, test.want)
		}
	}
	if got := fmt.Sprint(r.IDs()); got != "[a.one a.secret a.ten b.one b.two]" || r.Len() != 5 {
		t.Errorf("ids %s, %d modules", got, r.Len())
	}
	var seen []string
	for id, module := range r.All(apcore.ListOptions{}) {
		if seen = append(seen, id); module != r.Get(id) && r.Has(id) {
			t.Errorf("%s is another module", id)
		}
		r.Unregister("b.one", apcore.UnregisterOptions{})
		if id == "b.one" {
			break
		}
	}
	if got := fmt.Sprint(seen); got != "[a.one a.ten b.one]" {
		t.Errorf("a listing is not of one moment: %s", got)
	}
	out, err := r.ExportSchema("a.secret", false)
	if err != nil || out["module_id"] != "a.secret" {
		t.Errorf("a hidden module by its id: %v, %v", out, err)
	}
}

// §10.3: a description for people.
func TestDescribe(t *testing.T) {
	r := quiet()
	must(t, apcore.Register(r, "mail.send", echoMail, apcore.Spec{
		Description: "Sends a mail", Documentation: "Retries nothing.", Tags: []string{"mail", "out"}, Name: "Mail", Version: "1.2.0",
		Annotations: apcore.Annotations{Idempotent: true, RequiresApproval: true}, Metadata: obj{"x-deprecation": obj{"sunset_date": "2027-01-31"}},
	}))
	want := `# mail.send

Sends a mail

- version: 1.2.0
- name: Mail
- tags: mail, out
- idempotent
- requires approval
- sunset date: 2027-01-31

## Inputs

- ` + "`body`" + ` (string)
- ` + "`to`" + ` (string), required: who gets it

## Output

- ` + "`body`" + ` (string)
- ` + "`to`" + ` (string), required: who gets it

## Documentation

Retries nothing.
`
	got, err := r.Describe("mail.send")
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	must(t, r.Register("own.words", &wordy{description: "x", own: "I am what I am."}, apcore.RegisterOptions{}))
	if got, err := r.Describe("own.words"); err != nil || got != "I am what I am." {
		t.Errorf("%q, %v", got, err)
	}
	must(t, r.Register("own.panic", &wordy{description: "x"}, apcore.RegisterOptions{}))
	if _, err := r.Describe("own.panic"); !errors.Is(err, apcore.CodeInternal) {
		t.Errorf("a module that cannot describe itself: %v", err)
	}
	for _, id := range []string{"", "no.such"} {
		if _, err := r.Describe(id); !errors.Is(err, apcore.CodeModuleNotFound) {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func (w *wordy) Describe() string {
	if w.own == "" {
		panic("no words")
	}
	return w.own
}

type mail struct {
	To   string `json:"to" jsonschema:"description=who gets it"`
	Body string `json:"body,omitempty"`
}

func echoMail(_ context.Context, in mail) (mail, error) { return in, nil }
