/* The words that administer. */
#ifndef ADMIN_H
#define ADMIN_H

#include <librdkafka/rdkafka.h>

#include "tasks.h"

extern const word ADMIN_WORDS[];

/* All of them are done by this client. */
void admin_open(rd_kafka_t *client);

#endif
