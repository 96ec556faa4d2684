package apcore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// dialError is a foreign error that holds what it was given.
type dialError struct{ dsn string }

func (e *dialError) Error() string { return "dial " + e.dsn }

// TestSecretsInErrorText is scenario 81: what a foreign error says of sensitive
// inputs is hidden in every text; the error itself stays within reach.
func TestSecretsInErrorText(t *testing.T) {
	const secret = `p@ss/"word"`
	schema := obj{"properties": obj{"note": obj{"x-sensitive": true}, "card": obj{"x-sensitive": true}}}
	tests := []struct {
		name    string
		inputs  obj
		failure error
		gone    []string
		stays   []string
	}{
		{"by key", obj{"password": secret}, &dialError{secret}, []string{secret}, []string{"dial ***REDACTED***"}},
		{"by schema", obj{"note": "dear diary"}, errors.New("bad note dear diary, see"), []string{"dear"}, []string{"bad note ***REDACTED***, see"}},
		{"by pattern", obj{"text": "use sk-123"}, errors.New("echo: use sk-123"), []string{"sk-123"}, nil},
		{"quoted", obj{"password": secret}, fmt.Errorf("bad %q", secret), []string{"word"}, nil},
		{"in a URL", obj{"password": secret}, errors.New((&url.URL{Scheme: "pg", User: url.UserPassword("u", secret), Host: "db"}).String()), []string{"word", "%22"}, []string{"pg://u:", "@db"}},
		{"in a query", obj{"token": "a b&c=d"}, errors.New("GET /?t=" + url.QueryEscape("a b&c=d")), []string{"b%26"}, []string{"GET /?t="}},
		{"deep", obj{"list": []any{obj{"secret": "inner-secret"}}}, errors.New("inner-secret"), []string{"inner-secret"}, nil},
		{"inside what is secret", obj{"card": obj{"numbers": []any{"4111-1111"}}}, errors.New("card 4111-1111"), []string{"4111"}, []string{"card ***"}},
		{"wrapped three deep", obj{"password": secret}, fmt.Errorf("a: %w", fmt.Errorf("b: %w", fmt.Errorf("c: %w", &dialError{secret}))), []string{secret}, []string{"a: b: c: dial"}},
		{"one within another", obj{"password": "long-secret", "token": "long"}, errors.New("long-secret"), []string{"secret", "long"}, nil},
		{"timeout", obj{"password": secret}, fmt.Errorf("%s: %w", secret, context.DeadlineExceeded), []string{secret}, nil},
		{"cancellation", obj{"password": secret}, fmt.Errorf("%s: %w", secret, context.Canceled), []string{secret}, nil},
		{"short, as a word", obj{"cvv_secret": "xyz", "pin_secret": json.Number("47110815")}, errors.New("cvv xyz,pin 47110815"), []string{"xyz", "47110815"}, []string{"cvv ***REDACTED***,pin ***REDACTED***"}},
		{"short, within a word", obj{"password": "abc", "token": 4711}, errors.New("abcd 247110"), nil, []string{"abcd 247110"}},
		{"too short", obj{"password": "ab"}, errors.New("ab"), nil, []string{"ab"}},
		{"as JSON", obj{"password": "a<b&c\n"}, errors.New(`{"p":"a\u003cb\u0026c\n"} {"p":"a<b&c\n"}`), []string{"003c", "a<b"}, nil},
		{"trimmed", obj{"password": " padded-secret\n"}, errors.New("bad padded-secret"), []string{"padded"}, []string{"bad ***"}},
		{"behind its scheme", obj{"authorization": "Bearer abcdef"}, errors.New("jwt abcdef expired"), []string{"abcdef"}, []string{"jwt ***REDACTED*** expired"}},
		{"URL of nobody's input", nil, errors.New("dial pg://app:p@ss-word@db:5432/x?a=b@c"), []string{"ss-word"}, []string{"pg://app:***REDACTED***@db:5432/x?a=b@c"}},
		{"password of an input's URL", obj{"dsn": "pg://app:open%2Fsesame@db"}, errors.New("open/sesame is wrong for app"), []string{"sesame"}, []string{"is wrong for app"}},
		{"setting", nil, errors.New(`host=db password=hunter2 user=x; GET /?api_key=hunter2&a=b`), []string{"hunter2"}, []string{"host=db password=***REDACTED*** user=x", "&a=b"}},
		{"pattern of nobody's input", nil, errors.New("refused sk-999 today"), []string{"sk-999"}, []string{"refused ***REDACTED*** today"}},
		{"joined", obj{"password": secret}, errors.Join(errors.New("harmless"), &dialError{secret}), []string{secret}, []string{"harmless\ndial"}},
		{"no secret", obj{"name": "public name"}, errors.New("public name"), nil, []string{"public name"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var log ledger
			h := newHost(t, apcore.ExecutorOptions{Redaction: apcore.RedactionConfig{Patterns: []string{`sk-\d+`}}, Logger: logTo(&log), Middleware: []apcore.Middleware{&hook{
				onError: func(*apcore.MiddlewareCall, *apcore.Error) (*apcore.Recovery, error) { return nil, test.failure },
			}}})
			h.module("outer", func(ctx context.Context, _ obj, _ *apcore.Context) (obj, error) {
				return apcore.Call[obj](ctx, "m", test.inputs)
			}).module("m", func(_ context.Context, in obj, _ *apcore.Context) (obj, error) {
				clear(in) // the module's copy is its own
				return nil, test.failure
			}, inputSchema(schema))
			_, err := h.call("outer", nil, nil)
			if h.effects.count() != 2 || !errors.Is(err, test.failure) {
				t.Fatalf("%v must be %v; effects %v", err, test.failure, h.effects.all())
			}
			var dial *dialError
			if errors.As(test.failure, &dial) && !errors.As(err, &dial) {
				t.Error("errors.As does not find the cause")
			}
			e := apcore.AsError(err)
			wire, marshalErr := json.Marshal(e)
			if marshalErr != nil {
				t.Fatal(marshalErr)
			}
			reason, _ := e.Details["reason"].(string)
			texts := []string{err.Error(), reason, e.Cause.Error(), fmt.Sprintf("%+v", e.Cause), string(wire), strings.Join(log.all()[:min(1, log.count())], "\n")}
			for _, gone := range test.gone {
				for _, text := range texts {
					if strings.Contains(text, gone) {
						t.Errorf("%q stands in %s", gone, text)
					}
				}
			}
			for _, stays := range test.stays {
				if !strings.Contains(e.Cause.Error(), stays) {
					t.Errorf("%q is missing in %s", stays, e.Cause)
				}
			}
		})
	}
}

// TestSecretsOfHooks: errors of middleware and handler are cleaned too, also of a
// secret that middleware brought in or took out.
func TestSecretsOfHooks(t *testing.T) {
	swap := &hook{before: func(*apcore.MiddlewareCall) (obj, error) { return obj{"password": "brought-in"}, nil }}
	fails := &hook{before: func(*apcore.MiddlewareCall) (obj, error) { return nil, errors.New("given-in and brought-in") }}
	h := newHost(t, apcore.ExecutorOptions{Middleware: []apcore.Middleware{swap, fails}}).module("m", nil)
	_, err := h.call("m", obj{"password": "given-in"}, nil)
	h.wants(err, apcore.CodeModuleExecuteError, 0)
	if text := err.Error(); strings.Contains(text, "given-in") || strings.Contains(text, "brought-in") {
		t.Error(text)
	}
	h = newHost(t, apcore.ExecutorOptions{ApprovalHandler: &answering{err: errors.New("cannot store given-in")}}).module("m", nil, gated)
	_, err = h.call("m", obj{"password": "given-in"}, nil)
	h.wants(err, apcore.CodeModuleExecuteError, 0)
	if strings.Contains(err.Error(), "given-in") {
		t.Error(err)
	}
}
