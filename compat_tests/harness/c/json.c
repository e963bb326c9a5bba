#include "json.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char ALPHABET[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static json *value(const char **at);

static void skip(const char **at) {
    while (**at == ' ' || **at == '\t' || **at == '\n' || **at == '\r') ++*at;
}

static int take(const char **at, char wanted) {
    skip(at);
    if (**at != wanted) return 0;
    ++*at;
    return 1;
}

static unsigned hex(const char **at) {
    char digits[5] = {0};
    strncpy(digits, *at, 4);
    *at += strlen(digits);
    return (unsigned)strtoul(digits, NULL, 16);
}

static char *put_utf8(char *to, unsigned code) {
    if (code < 0x80) {
        *to++ = (char)code;
    } else if (code < 0x800) {
        *to++ = (char)(0xC0 | code >> 6);
        *to++ = (char)(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
        *to++ = (char)(0xE0 | code >> 12);
        *to++ = (char)(0x80 | (code >> 6 & 0x3F));
        *to++ = (char)(0x80 | (code & 0x3F));
    } else {
        *to++ = (char)(0xF0 | code >> 18);
        *to++ = (char)(0x80 | (code >> 12 & 0x3F));
        *to++ = (char)(0x80 | (code >> 6 & 0x3F));
        *to++ = (char)(0x80 | (code & 0x3F));
    }
    return to;
}

static char *escaped(char *to, const char **at) {
    static const char NAMED[] = "b\bf\fn\nr\rt\t";
    char which = *(*at)++;
    if (which == 'u') {
        unsigned code = hex(at);
        if (code >= 0xD800 && code < 0xDC00 && (*at)[0] == '\\' && (*at)[1] == 'u') {
            *at += 2;
            code = 0x10000 + ((code - 0xD800) << 10) + (hex(at) - 0xDC00);
        }
        return put_utf8(to, code);
    }
    for (const char *named = NAMED; *named; named += 2)
        if (*named == which) which = named[1];
    *to++ = which;
    return to;
}

/* What is unescaped is never longer than it was. */
static char *string(const char **at) {
    const char *end = *at;
    while (*end && *end != '"') end += *end == '\\' && end[1] ? 2 : 1;
    char *text = malloc((size_t)(end - *at) + 1), *to = text;
    while (**at && **at != '"') {
        if (**at != '\\') {
            *to++ = *(*at)++;
            continue;
        }
        ++*at;
        to = escaped(to, at);
    }
    *to = 0;
    if (**at) ++*at;
    return text;
}

static void members(const char **at, json *of, char closing) {
    json **next = &of->first;
    while (!take(at, closing)) {
        char *name = NULL;
        if (closing == '}' && take(at, '"')) {
            name = string(at);
            take(at, ':');
        }
        if (!(*next = value(at))) {
            free(name);
            return;
        }
        (*next)->name = name;
        next = &(*next)->next;
        take(at, ',');
    }
}

static int word(const char **at, const char *wanted) {
    size_t length = strlen(wanted);
    if (strncmp(*at, wanted, length) != 0) return 0;
    *at += length;
    return 1;
}

static json *value(const char **at) {
    json *found = calloc(1, sizeof *found);
    skip(at);
    if (take(at, '{')) {
        found->kind = JSON_OBJECT;
        members(at, found, '}');
    } else if (take(at, '[')) {
        found->kind = JSON_LIST;
        members(at, found, ']');
    } else if (take(at, '"')) {
        found->kind = JSON_STRING;
        found->text = string(at);
    } else if (word(at, "true")) {
        found->kind = JSON_TRUE;
    } else if (word(at, "false")) {
        found->kind = JSON_FALSE;
    } else if (!word(at, "null")) {
        char *end;
        found->kind = JSON_NUMBER;
        found->number = strtoll(*at, &end, 10);
        if (end == *at) {
            free(found);
            return NULL;
        }
        *at = end;
    }
    return found;
}

json *json_parse(const char *text) { return value(&text); }

void json_free(json *what) {
    while (what) {
        json *next = what->next;
        json_free(what->first);
        free(what->name);
        free(what->text);
        free(what);
        what = next;
    }
}

const json *json_get(const json *object, const char *name) {
    const json *each = object->first;
    while (each && strcmp(each->name, name) != 0) each = each->next;
    return each;
}

const char *json_text(const json *object, const char *name) {
    const json *found = json_get(object, name);
    return found ? found->text : NULL;
}

long long json_number(const json *object, const char *name) {
    const json *found = json_get(object, name);
    return found ? found->number : 0;
}

int json_true(const json *object, const char *name) {
    const json *found = json_get(object, name);
    return found && found->kind == JSON_TRUE;
}

unsigned char *bytes_of(const char *base64, size_t *length) {
    *length = 0;
    if (!base64) return NULL;
    unsigned char *data = malloc(strlen(base64) + 1);
    unsigned bits = 0;
    int count = 0;
    for (; *base64 && *base64 != '='; base64++) {
        bits = bits << 6 | (unsigned)(strchr(ALPHABET, *base64) - ALPHABET);
        if ((count += 6) < 8) continue;
        count -= 8;
        data[(*length)++] = (unsigned char)(bits >> count);
    }
    return data;
}

static void room_for(line *to, size_t more) {
    if (to->length + more + 1 <= to->room) return;
    to->room = 2 * (to->length + more + 1);
    to->text = realloc(to->text, to->room);
}

void add(line *to, const char *format, ...) {
    va_list values;
    va_start(values, format);
    room_for(to, (size_t)vsnprintf(NULL, 0, format, values));
    va_end(values);
    va_start(values, format);
    to->length += (size_t)vsprintf(to->text + to->length, format, values);
    va_end(values);
}

void add_string(line *to, const char *text, size_t length) {
    add(to, "\"");
    for (const char *at = text; at < text + length; at++) {
        if (*at == '"' || *at == '\\' || (unsigned char)*at < 0x20)
            add(to, "\\u%04x", (unsigned char)*at);
        else
            add(to, "%c", *at);
    }
    add(to, "\"");
}

void add_base64(line *to, const void *data, size_t length) {
    const unsigned char *from = data;
    if (!from) {
        add(to, "null");
        return;
    }
    room_for(to, 2 + 4 * ((length + 2) / 3));
    char *out = to->text + to->length;
    *out++ = '"';
    for (size_t n = 0; n < length; n += 3) {
        unsigned bits = (unsigned)from[n] << 16;
        if (n + 1 < length) bits |= (unsigned)from[n + 1] << 8;
        if (n + 2 < length) bits |= from[n + 2];
        for (int sextet = 0; sextet < 4; sextet++)
            *out++ = n + (size_t)sextet <= length ? ALPHABET[bits >> (18 - 6 * sextet) & 63] : '=';
    }
    *out++ = '"';
    *out = 0;
    to->length = (size_t)(out - to->text);
}
