package codec_test

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/temporal/codec"
)

func key(id string, fill byte) codec.Key {
	return codec.Key{ID: id, Secret: bytes.Repeat([]byte{fill}, 32)}
}

func newCodec(t testing.TB, keys ...codec.Key) *codec.Codec {
	t.Helper()
	c, err := codec.New(codec.Options{Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestBadOptions(t *testing.T) {
	for name, test := range map[string]struct {
		keys []codec.Key
		want string
	}{
		"none":         {nil, "Options.Keys is empty"},
		"no id":        {[]codec.Key{key("", 1)}, "Keys[0].ID"},
		"long id":      {[]codec.Key{key(strings.Repeat("k", 256), 1)}, "Keys[0].ID"},
		"same id":      {[]codec.Key{key("a", 1), key("a", 2)}, `Keys[1].ID "a"`},
		"short secret": {[]codec.Key{key("a", 1), {ID: "b", Secret: make([]byte, 16)}}, "Keys[1].Secret has 16 bytes"},
	} {
		if _, err := codec.New(codec.Options{Keys: test.keys}); apcore.CodeOf(err) != apcore.CodeInvalidInput || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Property: what is encoded comes back, hides data and metadata, and is never
// the same twice.
func TestRoundTrip(t *testing.T) {
	c := newCodec(t, key("now", 1))
	rapid.Check(t, func(t *rapid.T) {
		payload := &commonpb.Payload{
			Metadata: map[string][]byte{"encoding": []byte("json/plain"), "note": rapid.SliceOfN(rapid.Byte(), 16, 64).Draw(t, "note")},
			Data:     rapid.SliceOfN(rapid.Byte(), 16, 4096).Draw(t, "data"),
		}
		before := proto.Clone(payload)
		encoded, err := c.Encode([]*commonpb.Payload{payload, payload})
		if err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(payload, before) || bytes.Equal(encoded[0].Data, encoded[1].Data) {
			t.Error("the payload was changed, or encrypted the same way twice")
		}
		for _, hidden := range [][]byte{payload.Data, payload.Metadata["note"]} {
			if bytes.Contains(encoded[0].Data, hidden) {
				t.Error("it can still be read")
			}
		}
		decoded, err := c.Decode(encoded)
		if err != nil || len(decoded) != 2 || !proto.Equal(decoded[0], payload) || !proto.Equal(decoded[1], payload) {
			t.Errorf("decoded %v, %v", decoded, err)
		}
	})
}

// Keys are rotated while histories of the old key are still read.
func TestRotation(t *testing.T) {
	payloads := []*commonpb.Payload{{Metadata: map[string][]byte{"encoding": []byte("json/plain")}, Data: []byte(`"x"`)}}
	old := newCodec(t, key("2025", 1))
	ready := newCodec(t, key("2025", 1), key("2026", 2))
	rotated := newCodec(t, key("2026", 2), key("2025", 1))
	dropped := newCodec(t, key("2026", 2))
	for name, test := range map[string]struct {
		writer, reader *codec.Codec
		keyID          string
		ok             bool
	}{
		"old to ready":        {old, ready, "2025", true},
		"ready writes old":    {ready, old, "2025", true},
		"rotated to ready":    {rotated, ready, "2026", true},
		"old to rotated":      {old, rotated, "2025", true},
		"rotated to old":      {rotated, old, "2026", false},
		"old to dropped":      {old, dropped, "2025", false},
		"same id, other key":  {newCodec(t, key("2026", 9)), dropped, "2026", false},
		"no key of that name": {newCodec(t, key("mine", 2)), dropped, "mine", false},
	} {
		encoded, err := test.writer.Encode(payloads)
		if err != nil || string(encoded[0].Metadata[codec.KeyIDField]) != test.keyID {
			t.Fatalf("%s: %v, %v", name, encoded, err)
		}
		decoded, err := test.reader.Decode(encoded)
		if (err == nil) != test.ok || test.ok && !proto.Equal(decoded[0], payloads[0]) {
			t.Errorf("%s: %v, %v", name, decoded, err)
		}
	}
}

func TestTamperedPayloads(t *testing.T) {
	c := newCodec(t, key("a", 1), key("b", 1))
	plain := &commonpb.Payload{Metadata: map[string][]byte{"encoding": []byte("json/plain")}, Data: []byte(`"x"`)}
	if got, err := c.Decode([]*commonpb.Payload{plain}); err != nil || got[0] != plain {
		t.Errorf("a plain payload: %v, %v", got, err)
	}
	for name, spoil := range map[string]func(p *commonpb.Payload){
		"data":      func(p *commonpb.Payload) { p.Data[len(p.Data)/2] ^= 1 },
		"nonce":     func(p *commonpb.Payload) { p.Data[0] ^= 1 },
		"too short": func(p *commonpb.Payload) { p.Data = p.Data[:5] },
		"no data":   func(p *commonpb.Payload) { p.Data = nil },
		// The same secret under another id: the id is authenticated.
		"key id": func(p *commonpb.Payload) { p.Metadata[codec.KeyIDField] = []byte("b") },
	} {
		encoded, err := c.Encode([]*commonpb.Payload{plain})
		if err != nil {
			t.Fatal(err)
		}
		spoil(encoded[0])
		if got, err := c.Decode(encoded); err == nil {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestBadHandlerOptions(t *testing.T) {
	allow := func(*http.Request) error { return nil }
	for name, opts := range map[string]codec.HandlerOptions{
		"nobody said who":   {},
		"negative size":     {Authorize: allow, MaxBodyBytes: -1},
		"any origin":        {Authorize: allow, Origins: []string{"*"}},
		"origin with path":  {Authorize: allow, Origins: []string{"https://ui.example.com/"}},
		"origin of no host": {Authorize: allow, Origins: []string{"https://"}},
		"storage":           {Authorize: allow, ExternalStorage: converter.ExternalStorage{PayloadSizeThreshold: -1}},
	} {
		if _, err := codec.NewHandler(opts); apcore.CodeOf(err) != apcore.CodeInvalidInput {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The web interface's way: a page asks first, then sends payloads with its
// user's token.
func TestHandler(t *testing.T) {
	c := newCodec(t, key("a", 1))
	handler, err := codec.NewHandler(codec.HandlerOptions{
		Origins: []string{"https://ui.example.com"}, MaxBodyBytes: 4096,
		Authorize: func(r *http.Request) error {
			if r.Header.Get("Authorization") != "Bearer good" {
				return errors.New("secret reason")
			}
			return nil
		},
	}, c)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	defer server.Close()
	ask := func(method, path, token, origin, body string) (status int, allowed string) {
		request, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", token)
		request.Header.Set("Origin", origin)
		response, err := server.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil {
			t.Error(err)
		}
		return response.StatusCode, response.Header.Get("Access-Control-Allow-Origin")
	}
	const ui = "https://ui.example.com"
	for name, test := range map[string]struct {
		method, path, token, origin, body, allowed string
		status                                     int
	}{
		"preflight":        {http.MethodOptions, "/decode", "", ui, "", ui, http.StatusNoContent},
		"preflight, other": {http.MethodOptions, "/decode", "", "https://evil.example.com", "", "", http.StatusNoContent},
		"no token":         {http.MethodPost, "/decode", "", ui, `{}`, ui, http.StatusForbidden},
		"good":             {http.MethodPost, "/ns/decode", "Bearer good", ui, `{}`, ui, http.StatusOK},
		"no JSON":          {http.MethodPost, "/decode", "Bearer good", ui, `{`, ui, http.StatusBadRequest},
		"too long":         {http.MethodPost, "/decode", "Bearer good", ui, strings.Repeat(" ", 5000), ui, http.StatusBadRequest},
		"other path":       {http.MethodPost, "/", "Bearer good", ui, `{}`, ui, http.StatusNotFound},
	} {
		if status, allowed := ask(test.method, test.path, test.token, test.origin, test.body); status != test.status || allowed != test.allowed {
			t.Errorf("%s: status %d, allowed %q", name, status, allowed)
		}
	}
	remote := converter.NewRemotePayloadCodec(converter.RemotePayloadCodecOptions{
		Endpoint: server.URL, Client: *server.Client(),
		ModifyRequest: func(r *http.Request) error { r.Header.Set("Authorization", "Bearer good"); return nil },
	})
	payload := &commonpb.Payload{Metadata: map[string][]byte{"encoding": []byte("json/plain")}, Data: []byte(`"hello"`)}
	encoded, err := c.Encode([]*commonpb.Payload{payload})
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := remote.Decode(encoded)
	if err != nil || len(decoded) != 1 || !proto.Equal(decoded[0], payload) {
		t.Errorf("over the server: %v, %v", decoded, err)
	}
}
