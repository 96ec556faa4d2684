package codec

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// Metadata of an encrypted payload. Histories hold them: they never change.
const (
	// Encoding is the value of the metadata key "encoding".
	Encoding = "binary/encrypted"
	// KeyIDField is the metadata key that names the key.
	KeyIDField = "encryption-key-id"
)

const (
	maxKeyIDLength = 255
	keyBytes       = 32
)

// Key is one AES-256 key.
type Key struct {
	// ID names the key in every payload that it encrypts; it is no secret.
	ID string
	// Secret has 32 random bytes.
	Secret []byte
}

// Options configures [New].
type Options struct {
	// Keys are tried by id to decrypt; the first one encrypts. At least one is
	// needed.
	Keys []Key
}

// Codec encrypts payloads with AES-256-GCM, their metadata included. Payloads
// that were not encrypted pass through Decode, so a namespace can start to
// encrypt while workflows run. It may be used concurrently, waits for nothing
// and may be used in workflow code.
type Codec struct {
	current string
	ciphers map[string]cipher.AEAD
}

// New makes a codec. It fails with GENERAL_INVALID_INPUT when there is no key, an
// id is empty, too long or used twice, or a secret does not have 32 bytes.
func New(opts Options) (*Codec, error) {
	if len(opts.Keys) == 0 {
		return nil, apcore.NewError(apcore.CodeInvalidInput, "Options.Keys is empty: a codec needs a key to encrypt with")
	}
	c := &Codec{current: opts.Keys[0].ID, ciphers: map[string]cipher.AEAD{}}
	for i, key := range opts.Keys {
		switch _, known := c.ciphers[key.ID]; {
		case key.ID == "" || len(key.ID) > maxKeyIDLength:
			return nil, apcore.NewError(apcore.CodeInvalidInput, "Options.Keys[%d].ID has %d bytes: give 1 to %d", i, len(key.ID), maxKeyIDLength)
		case known:
			return nil, apcore.NewError(apcore.CodeInvalidInput, "Options.Keys[%d].ID %q is there twice", i, key.ID)
		case len(key.Secret) != keyBytes:
			return nil, apcore.NewError(apcore.CodeInvalidInput, "Options.Keys[%d].Secret has %d bytes: AES-256 needs %d", i, len(key.Secret), keyBytes)
		}
		sealer, err := newCipher(key.Secret)
		if err != nil {
			return nil, apcore.NewError(apcore.CodeInvalidInput, "Options.Keys[%d]: %w", i, err)
		}
		c.ciphers[key.ID] = sealer
	}
	return c, nil
}

// newCipher draws nonces itself: 2^32 payloads may be encrypted with one key.
func newCipher(secret []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// Encode encrypts each payload with the first key.
func (c *Codec) Encode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	encoded := make([]*commonpb.Payload, len(payloads))
	for i, payload := range payloads {
		plain, err := proto.Marshal(payload)
		if err != nil {
			return nil, fmt.Errorf("payload %d cannot be written: %w", i, err)
		}
		sealer := c.ciphers[c.current]
		sealed := make([]byte, sealer.NonceSize(), sealer.NonceSize()+len(plain)+sealer.Overhead())
		if _, err := rand.Read(sealed); err != nil {
			return nil, fmt.Errorf("payload %d: %w", i, err)
		}
		encoded[i] = &commonpb.Payload{
			Metadata: map[string][]byte{converter.MetadataEncoding: []byte(Encoding), KeyIDField: []byte(c.current)},
			Data:     sealer.Seal(sealed, sealed, plain, []byte(c.current)),
		}
	}
	return encoded, nil
}

// Decode decrypts what Encode made and leaves everything else as it is. It fails
// when the key is not there or the payload was changed; its errors hold nothing
// of the payload.
func (c *Codec) Decode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	decoded := make([]*commonpb.Payload, len(payloads))
	for i, payload := range payloads {
		if string(payload.GetMetadata()[converter.MetadataEncoding]) != Encoding {
			decoded[i] = payload
			continue
		}
		plain, err := c.open(payload)
		if err != nil {
			return nil, fmt.Errorf("payload %d cannot be decrypted: %w", i, err)
		}
		decoded[i] = plain
	}
	return decoded, nil
}

func (c *Codec) open(payload *commonpb.Payload) (*commonpb.Payload, error) {
	id := string(payload.GetMetadata()[KeyIDField])
	sealer, ok := c.ciphers[id]
	if !ok {
		return nil, fmt.Errorf("there is no key %q", id)
	}
	data := payload.GetData()
	if len(data) < sealer.NonceSize() {
		return nil, fmt.Errorf("it has %d bytes only", len(data))
	}
	nonce, sealed := data[:sealer.NonceSize()], data[sealer.NonceSize():]
	plain, err := sealer.Open(nil, nonce, sealed, []byte(id))
	if err != nil {
		return nil, fmt.Errorf("key %q: %w", id, err)
	}
	opened := &commonpb.Payload{}
	if err := proto.Unmarshal(plain, opened); err != nil {
		return nil, fmt.Errorf("key %q: it holds no payload", id)
	}
	return opened, nil
}

var _ converter.PayloadCodec = (*Codec)(nil)
